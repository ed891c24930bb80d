import { spawn } from 'node:child_process'
import { output, run } from './process.ts'

/** A switch with a cable to each of several booted hosts. No route leads further. */
export interface Bridge {
  /** Address of each host on it, in the order they were given. */
  readonly addresses: readonly string[]
  /** Pulls the cable of a host, or plugs it in again. */
  plug(index: number, isIn: boolean): Promise<void>
  cut(): Promise<void>
}

/** Connects hosts that were booted without a network. */
export async function layBridge(leaders: readonly number[]): Promise<Bridge> {
  const holder = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', 'sleep', 'infinity'], {
    stdio: 'ignore',
  })
  const inside = (pid: number, args: readonly string[]) =>
    output('nsenter', ['-t', String(pid), '-n', 'ip', ...args])
  const own = await output('readlink', ['/proc/self/ns/net'])
  const namespaceOf = async (pid: number) => (await run('readlink', [`/proc/${pid}/ns/net`])).stdout
  for (let found = ''; found === '' || found === own;) found = await namespaceOf(holder.pid!)
  await inside(holder.pid!, ['link', 'add', 'bridge', 'type', 'bridge'])
  await inside(holder.pid!, ['link', 'set', 'bridge', 'up'])
  const addresses: string[] = []
  for (const [index, leader] of leaders.entries()) {
    const port = `port${index}`
    const peer = ['type', 'veth', 'peer', 'name', 'host0', 'netns', String(leader)]
    await inside(holder.pid!, ['link', 'add', port, ...peer])
    await inside(holder.pid!, ['link', 'set', port, 'master', 'bridge', 'up'])
    const address = `10.78.0.${index + 1}`
    await inside(leader, ['address', 'add', `${address}/24`, 'dev', 'host0'])
    await inside(leader, ['link', 'set', 'host0', 'up'])
    addresses.push(address)
  }
  return {
    addresses,
    plug: async (index, isIn) => {
      await inside(holder.pid!, ['link', 'set', `port${index}`, isIn ? 'up' : 'down'])
    },
    async cut() {
      const ended = new Promise<void>((resolve) => holder.once('exit', () => resolve()))
      holder.kill('SIGKILL')
      await ended
    },
  }
}
