import { spawn } from 'node:child_process'
import type { NetworkHost } from './network-host.ts'

/** What the neighbour of a host sees of it, and what the kernel of the host says of its other link, from the start of the watch on. */
export interface NetworkWatch {
  /** Seconds from a moment (milliseconds since the epoch) until the host answered pings again for good; 0 where it was never away longer than 0.8 s. */
  backAfter(since: number): number
  /** The longest time without an answer of a ping that began after a moment, in seconds. */
  longestGap(since: number): number
  /** Seconds from the first answer of a ping after the longest gap until the API had answered a request. */
  apiAfterPing(since: number): number
  /** Events of links, addresses and routes that are about eth2, as `ip monitor` prints them; until `endMonitor`. */
  otherLinkEvents(): readonly string[]
  /** Its process would hold the network of a host whose power is cut. */
  endMonitor(): void
  end(): void
}

const awaySeconds = 0.8

/** Begins to watch a host at an address. */
export function watchNetwork(host: NetworkHost, address: string): NetworkWatch {
  const children: (() => void)[] = []
  /** Runs a program in a network namespace until the end of the watch or of the test. */
  function follow(pid: number, args: readonly string[]) {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', '-t', String(pid), '-n', ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
    const end = () => void child.kill('SIGKILL')
    children.push(end)
    return { lines: () => text.split('\n').slice(0, -1), end }
  }
  const neighbour = host.clientNamespace()
  const pings = follow(neighbour, [...['chroot', host.tree, 'ping', '-D', '-n', '-i', '0.05', address]])
  const requests = follow(neighbour, ['bash', '-c', requestLoop, 'sh', address])
  const monitor = follow(host.leader, ['ip', '-o', 'monitor', 'link', 'address', 'route'])

  /** When pings were answered, from a moment on. */
  const answers = (since: number) =>
    pings.lines().flatMap((line) => {
      const [, seconds] = /^\[(\d+\.\d+)\] \d+ bytes from/.exec(line) ?? []
      const at = Number(seconds) * 1_000
      return at >= since ? [at] : []
    })
  /** Times without an answer, the last one until now. */
  function gaps(since: number) {
    let from = since
    return [...answers(since), Date.now()].map((to) => {
      const gap = { to, seconds: (to - from) / 1_000 }
      from = to
      return gap
    })
  }
  const longest = (since: number) => gaps(since).toSorted((a, b) => b.seconds - a.seconds)[0]!
  return {
    backAfter: (since) =>
      ((gaps(since).findLast(({ seconds }) => seconds > awaySeconds)?.to ?? since) - since) / 1_000,
    longestGap: (since) => longest(since).seconds,
    apiAfterPing(since) {
      const { to } = longest(since)
      const at = requests
        .lines()
        .map(Number)
        .find((each) => each >= to)
      return at === undefined ? Infinity : (at - to) / 1_000
    },
    otherLinkEvents: () => monitor.lines().filter((line) => /\beth2\b/.test(line)),
    endMonitor: monitor.end,
    end: () => children.forEach((end) => end()),
  }
}

/** Prints when each request to the API had an answer, milliseconds since the epoch. */
const requestLoop = `
while :; do
  ! curl --silent --insecure --max-time 1 --output /dev/null "https://$1:5080/v1/edge-mgmt/edgehosts/current" || date +%s%3N
  sleep 0.1
done`
