import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

// The hosts of the benchmarks of the platform, by their number. Pure.

export const uidOf = (index: number) => `018bcfe5-6800-7000-8000-${String(index).padStart(12, '0')}`

/** An address of 127.0.0.0/8 for each of up to 15 million hosts, none of them that of a server. */
export const addressOf = (index: number) =>
  `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`

/** What a host reports, other facts for another change. */
export const factsOf = (index: number, change: number) => ({
  spec: {
    device: {
      archType: index % 20 === 0 ? 'arm64' : 'amd64',
      cpu: { cores: 4 + (index % 8) },
      memory: { sizeInMB: 8_192 + change },
      os: { family: 'debian', kernel: 'linux', kernelVersion: '6.12.1', version: String(11 + (index % 3)) },
      nics: ['eth0', 'eth1'].map((nicName) => ({ nicName, macAddr: '00:11:22:33:44:55', ip: '192.0.2.7' })),
      disks: [{ size: 500, vendor: 'ACME', controller: 'nvme' }],
    },
    service: { name: 'edgehostd', version: `1.3.${change % 5}` },
    host: { hostAddress: `192.0.2.${index % 250}`, hostChecksum: String(change).padStart(64, '0') },
  },
})

export interface HostLoadArgs {
  /** File of the certificate that the hosts trust, PEM. */
  readonly certificate: string
  /** The one key of all hosts, PEM. */
  readonly privateKey: string
  readonly count: number
}

/**
 * What the first hosts shall do.
 * - `logIn`: log in, so many at once, and close their connections.
 * - `comeBack`: all at the same moment, log in and send a heartbeat, until it is accepted; the connections stay open.
 * - `beatOnce`: a heartbeat each on a new connection, at a random moment of the period; one of a hundred also sends its facts.
 * - `beatKept`: a heartbeat each on the connection that is open, or a new one that stays open.
 * - `askKept`: the same with the question whether what is wanted of the host has changed.
 * - `close`: all connections are closed.
 */
export interface HostLoadOrder {
  readonly name: 'logIn' | 'comeBack' | 'beatOnce' | 'beatKept' | 'askKept' | 'close'
  readonly port: number
  readonly hostCount: number
  readonly atOnce: number
  readonly periodMs: number
  /** Which hosts send facts, and which. */
  readonly change: number
  /** With its quotes; for `askKept`. */
  readonly etag: string
}

export interface HostLoadResult {
  readonly durationMs: number
  /** How often each status or error was the end of a try; ` again` behind a status for a connection that was open before. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Of the hosts, in their order; empty for one that is not logged in. */
  readonly tokens: readonly string[]
}

/** The process of the hosts. */
export interface HostLoad {
  run(
    name: HostLoadOrder['name'],
    order: Partial<HostLoadOrder> & { readonly port: number },
  ): Promise<HostLoadResult>
  /** The tokens of the first hosts, which have logged in. */
  tokens(hostCount: number): Promise<readonly string[]>
  stop(): Promise<void>
}

/** @param core the only processor that it may use; undefined for all */
export async function startHostLoad(args: HostLoadArgs, core: number | undefined): Promise<HostLoad> {
  const child = fork(join(import.meta.dirname, 'host-load.ts'), [JSON.stringify(args)], { execArgv: [] })
  await once(child, 'message')
  if (core !== undefined)
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(child.pid)], {
      stdio: 'pipe',
    })
  const ended = once(child, 'exit').then(() => {
    throw new Error('the process of the hosts has ended')
  })
  // The order that is running then is told.
  ended.catch(() => undefined)
  const load: HostLoad = {
    async run(name, order) {
      const answer = once(child, 'message')
      child.send({
        hostCount: args.count,
        atOnce: 1,
        periodMs: 0,
        change: 0,
        etag: '',
        ...order,
        name,
      } satisfies HostLoadOrder)
      const [result] = (await Promise.race([answer, ended])) as [HostLoadResult]
      return result
    },
    tokens: async (hostCount) => (await load.run('close', { port: 0 })).tokens.slice(0, hostCount),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
  return load
}

/** @throws Error when a try ended otherwise */
export function requireAll({ outcomes }: HostLoadResult, wanted: string): void {
  const others = Object.keys(outcomes).filter((outcome) => outcome !== wanted)
  if (others.length > 0) throw new Error(`not all replies are ${wanted}: ${JSON.stringify(outcomes)}`)
}
