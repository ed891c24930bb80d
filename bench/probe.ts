import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Something that looks on from a process of its own, so that the load does not disturb what it sees. */
export interface Probe<Result> {
  /** Ends it and gives what it has seen. */
  stop(): Promise<Result>
}

/**
 * Starts a probe: a program of this folder that says `ready`, and its result when it is told to stop.
 * @param args handed to it as JSON
 */
export async function startProbe<Result>(program: string, args: unknown): Promise<Probe<Result>> {
  const child = fork(join(import.meta.dirname, program), [JSON.stringify(args)], { execArgv: [] })
  await once(child, 'message')
  return {
    async stop() {
      const told = once(child, 'message')
      child.send('stop')
      const [result] = (await told) as [Result]
      child.disconnect()
      await once(child, 'exit')
      return result
    },
  }
}

/** What a probe does: looks again and again, and tells what it has seen. */
export interface Watch {
  look(): Promise<void>
  /** Called once, at the end. */
  finish(): unknown
}

/** The other side: what the probe was started with. */
export const readProbeArgs = (): unknown => JSON.parse(process.argv[2] ?? 'null')

/** The other side: looks until told to stop. */
export async function runProbe({ look, finish }: Watch): Promise<void> {
  const stopping = new AbortController()
  process.once('message', () => stopping.abort())
  // Without its parent there is no process to tell.
  process.once('disconnect', () => process.exit(0))
  await look()
  process.send?.('ready')
  while (!stopping.signal.aborted) await look()
  process.send?.(finish())
}
