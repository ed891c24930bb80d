import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** A measurement in a process of its own, so that the process that makes the load does not disturb it. */
export interface Probe<Result> {
  /** Ends the process and returns its result. */
  stop(): Promise<Result>
}

/**
 * Starts a probe: a program of this folder that sends the message `ready`, and its result after the message `stop`.
 * @param args passed to the program as JSON
 */
export async function startProbe<Result>(program: string, args: unknown): Promise<Probe<Result>> {
  const child = fork(join(import.meta.dirname, program), [JSON.stringify(args)], { execArgv: [] })
  await once(child, 'message')
  return {
    async stop() {
      const answer = once(child, 'message')
      child.send('stop')
      const [result] = (await answer) as [Result]
      child.disconnect()
      await once(child, 'exit')
      return result
    },
  }
}

/** What a probe does. */
export interface Sampler {
  /** Takes one sample; called again and again. */
  sample(): Promise<void>
  /** Returns the result; called once, at the end. */
  finish(): unknown
}

/** In the program of a probe: the arguments of `startProbe`. */
export const readProbeArgs = (): unknown => JSON.parse(process.argv[2] ?? 'null')

/** In the program of a probe: takes samples until the message `stop`, then sends the result. */
export async function runProbe({ sample, finish }: Sampler): Promise<void> {
  const stopping = new AbortController()
  process.once('message', () => stopping.abort())
  // The parent has died, so the result has no reader.
  process.once('disconnect', () => process.exit(0))
  await sample()
  process.send?.('ready')
  while (!stopping.signal.aborted) await sample()
  process.send?.(finish())
}
