import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface CuttingProxy {
  /** What it has seen: `cut`, and the header Range of each request that had one. */
  seen(): readonly string[]
  stop(): Promise<void>
}

/**
 * A proxy on the loopback of a booted host that cuts a connection once.
 * @param cutAfter bytes of replies
 */
export async function startCuttingProxy(
  leader: number,
  { from, to, cutAfter }: Readonly<Record<'from' | 'to' | 'cutAfter', number>>,
): Promise<CuttingProxy> {
  const program = join(import.meta.dirname, 'cutting-proxy-program.ts')
  const child = spawn(
    'nsenter',
    [
      ...['-t', String(leader), '-n', 'setpriv', '--pdeathsig', 'KILL'],
      ...[process.execPath, program, ...[from, to, cutAfter].map(String)],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (written += chunk))
  await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  if (child.exitCode !== null) throw new Error(`the proxy does not listen on port ${from}`)
  return {
    seen: () => written.split('\n').filter((line) => line !== '' && line !== 'listening'),
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}
