import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** The requests of a load client. */
export interface LoadOrder {
  readonly url: string
  /** PEM files; a certificate of any of them is trusted. */
  readonly cacerts: readonly string[]
  readonly from: string
  /** Number of concurrent clients. */
  readonly clients: number
  /** Wait of each client after a reply. */
  readonly pauseMs: number
  /** One connection per client instead of one per request. */
  readonly keepAlive: boolean
}

/** The result: HTTP status codes and error codes with their counts. */
export interface LoadSummary {
  readonly outcomes: Readonly<Record<string, number>>
  /** SHA-256 of the certificates seen, with their counts. */
  readonly fingerprints: Readonly<Record<string, number>>
  readonly slowestMs: number
}

/** Clients that send requests until stopped. */
export interface Load {
  /** Ends the load when every request in flight has its reply. */
  stop(): Promise<LoadSummary>
}

/** Starts clients in the network namespace of a process; returns after the first reply. */
export async function startLoad(namespace: number, order: LoadOrder, token = ''): Promise<Load> {
  const program = join(import.meta.dirname, 'load-client.ts')
  const child = spawn(
    'nsenter',
    [
      ...['-t', String(namespace), '-n', 'setpriv', '--pdeathsig', 'KILL'],
      ...[process.execPath, program, JSON.stringify(order)],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
  )
  let written = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (chunk: string) => (written += chunk))
  child.stdin.write(`${token}\n`)
  await once(child.stdout, 'data')
  return {
    async stop() {
      child.stdin.end()
      await once(child, 'close')
      return JSON.parse(written.trim().split('\n').at(-1)!) as LoadSummary
    },
  }
}
