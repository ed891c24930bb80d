import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface ManyPulls {
  /** Reads all replies to their end. @returns counts by status and SHA-256 */
  finish(): Promise<Readonly<Record<string, number>>>
}

/** Begins so many pulls at once on the loopback of a booted host; returns when each has the head of its reply. */
export async function beginManyPulls(
  leader: number,
  { url, authorization, count }: { url: string; authorization: string; count: number },
): Promise<ManyPulls> {
  const program = join(import.meta.dirname, 'many-pulls-program.ts')
  const child = spawn(
    'nsenter',
    [
      ...['-t', String(leader), '-n', 'setpriv', '--pdeathsig', 'KILL'],
      ...[process.execPath, program, url, authorization, String(count)],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (written += chunk))
  await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  if (!written.startsWith('all')) throw new Error(`the pulls ended early: ${written}`)
  return {
    async finish() {
      child.stdin.end()
      await once(child, 'close')
      return JSON.parse(written.trim().split('\n').at(-1)!) as Readonly<Record<string, number>>
    },
  }
}
