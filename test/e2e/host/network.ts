import { spawn } from 'node:child_process'
import { output, run } from './process.ts'

/** A network of one cable: the host at one end, clients of many addresses at the other. */
export interface Wire {
  /** The host's addresses on it. */
  readonly host: { readonly ipv4: string; readonly ipv6: string }
  /** Process whose network namespace the clients are in. */
  readonly client: number
  /** An address that no client has used yet. */
  newAddress(family?: 'ipv4' | 'ipv6'): Promise<string>
  /** Gives the clients an address of the caller's choice. */
  addAddress(address: string): Promise<void>
  cut(): Promise<void>
}

/** Lays a cable between a booted host and a network namespace of clients. No route leads further. */
export async function layWire(leader: number): Promise<Wire> {
  const holder = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', 'sleep', 'infinity'], {
    stdio: 'ignore',
  })
  const client = holder.pid!
  const inClient = (args: readonly string[]) => output('nsenter', ['-t', String(client), '-n', 'ip', ...args])
  const inHost = (args: readonly string[]) => output('nsenter', ['-t', String(leader), '-n', 'ip', ...args])
  await otherNamespace(client)
  await inClient(['link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'host0', 'netns', String(leader)])
  await inClient(['link', 'set', 'lo', 'up'])
  await inClient(['link', 'set', 'wire', 'up'])
  // nodad: an address that is still tentative cannot be used.
  for (const [where, device, last] of [
    [inClient, 'wire', '2'],
    [inHost, 'host0', '1'],
  ] as const) {
    await where(['address', 'add', `10.77.0.${last}/16`, 'dev', device])
    await where(['address', 'add', `fd77::${last}/48`, 'dev', device, 'nodad'])
    await where(['link', 'set', device, 'up'])
  }
  return {
    ...clientsOf(client, 'wire'),
    async cut() {
      const ended = new Promise<void>((resolve) => holder.once('exit', () => resolve()))
      holder.kill('SIGKILL')
      await ended
    },
  }
}

/** The wire of a host whose ground has clients; it ends with the host. @param holder process that holds the host */
export const wireOnBridge = (holder: number): Wire => ({
  ...clientsOf(holder, 'edge0'),
  cut: () => Promise.resolve(),
})

/** @param device of the clients */
function clientsOf(client: number, device: string): Omit<Wire, 'cut'> {
  const addAddress = async (address: string) => {
    const [length, flags] = address.includes(':') ? [48, ['nodad']] : [16, []]
    const args = ['address', 'add', `${address}/${length}`, 'dev', device, ...flags]
    await output('nsenter', ['-t', String(client), '-n', 'ip', ...args])
  }
  let used = 0
  return {
    host: { ipv4: '10.77.0.1', ipv6: 'fd77::1' },
    client,
    addAddress,
    async newAddress(family = 'ipv4') {
      used += 1
      // Each IPv6 address in a /64 of its own, since a /64 is one client to the daemon.
      const address = family === 'ipv4' ? `10.77.1.${used}` : `fd77:0:0:${used.toString(16)}::2`
      await addAddress(address)
      return address
    },
  }
}

async function otherNamespace(pid: number): Promise<void> {
  const own = await output('readlink', ['/proc/self/ns/net'])
  for (;;) {
    const { stdout } = await run('readlink', [`/proc/${pid}/ns/net`])
    if (stdout && stdout !== own) return
  }
}
