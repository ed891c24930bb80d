import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { KubernetesError } from '../../kubernetes/client.ts'
import type { Logger } from '../../system/log.ts'
import type { LastingRuns, RunEnd } from '../../system/lasting/runs.ts'
import { StepFailed, type Step, type StepCalls, type StepEnd } from './step.ts'
import type { StepRecord, StepStore } from './step-store.ts'

/**
 * Name of the lasting run of a step, and with it of its unit: the same for the same key, so that the unit refuses a second start of the
 * same work.
 */
export function runNameOf(key: string): string {
  const readable = key
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40)
  const mark = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return readable === '' ? mark : `${readable.replace(/-$/, '')}-${mark}`
}

interface StepRunnerOptions {
  readonly runs: LastingRuns
  readonly store: StepStore
  readonly calls: StepCalls
  /** Path of `step.cjs`. */
  readonly program: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Logger
}

export interface StepContext {
  /** Aborted when the step shall be ended, as before a deletion. */
  readonly cut: AbortSignal
  /** Aborted when the daemon stops: an action continues without it, a call is ended. */
  readonly stopping: AbortSignal
  /** @param cursor position in the output after this line, to be stored with its events; undefined for a call */
  readonly onLine: (line: string, cursor: number | undefined) => void
  /** Masks sensitive values of the cluster, for the log. */
  readonly hide: (text: string) => string
}

/** End of a step; undefined if the daemon stops, so that the next one finds it again. */
export type StepRunEnd = StepEnd | undefined

/** Runs steps, and finds steps of a former process of the daemon again. */
export interface StepRunner {
  /** Runs a step to its end. */
  run(step: Step, context: StepContext): Promise<StepRunEnd>
  /** Waits for the end of a step that was started before the daemon. `unknown` where nothing is left of it. */
  resume(record: StepRecord, context: StepContext): Promise<StepRunEnd>
  /** Removes the files of all runs of these steps. */
  forget(records: readonly StepRecord[]): Promise<void>
}

// A call that does not end on its signal is not waited for any longer.
const graceMs = 10_000

export function createStepRunner(options: StepRunnerOptions): StepRunner {
  const { runs, store, calls, program, now, log } = options

  async function runCall(step: Step, { cut, stopping, onLine, hide }: StepContext): Promise<StepRunEnd> {
    const { work, timeoutMs } = step
    const call = work.kind === 'call' ? calls[work.call] : undefined
    store.begin(step, now())
    if (work.kind !== 'call' || !call)
      return {
        kind: 'failed',
        reason: `edgehostd has no such step: ${step.key}; this is a defect of edgehostd`,
      }
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), timeoutMs)
    const signal = AbortSignal.any([limit.signal, cut, stopping])
    let last = ''
    const emit = (line: string) => {
      last = line
      onLine(line, undefined)
    }
    try {
      await Promise.race([call(work.order, { signal, onLine: emit }), ignored(signal)])
      if (!signal.aborted) return { kind: 'done' }
    } catch (error) {
      if (!signal.aborted)
        return {
          kind: 'failed',
          reason: reasonOf(error, (stack) =>
            log.error({ step: hide(step.key), stack: hide(stack) }, unnamed),
          ),
        }
    } finally {
      clearTimeout(timer)
    }
    if (cut.aborted) return { kind: 'unknown' }
    if (stopping.aborted) return undefined
    return { kind: 'failed', reason: tooLong(timeoutMs, last) }
  }

  /** Follows the run of an action to its end. */
  async function follow(
    name: string,
    { timeoutMs, since }: { readonly timeoutMs: number; readonly since: number },
    { cut, stopping, onLine }: StepContext,
  ): Promise<StepRunEnd> {
    let last = ''
    const read = (from: number, onLine: StepContext['onLine'], signal: AbortSignal) =>
      runs.follow(name, {
        since: from,
        signal,
        onLine(line, cursor) {
          if (line.trim() !== '') last = line
          onLine(line, cursor)
        },
      })
    let end: RunEnd
    try {
      end = await read(since, onLine, AbortSignal.any([cut, stopping]))
    } catch (error) {
      if (cut.aborted) {
        await runs.stop(name)
        return { kind: 'unknown' }
      }
      if (stopping.aborted) return undefined
      throw error
    }
    // The reason may have been read before a restart.
    if (end.kind === 'exited' && end.exitCode !== 0 && last === '') await read(0, () => undefined, stopping)
    return endOf(end, timeoutMs, last)
  }

  return {
    async run(step, context) {
      const { key, timeoutMs, work } = step
      if (work.kind === 'call') return runCall(step, context)
      const name = runNameOf(key)
      const found = await runs.find(name)
      // One that lasts is of this step, although nothing is stored of it: the database was lost.
      if (found && !found.end) {
        store.begin(step, found.startedAt)
      } else {
        // Leftovers of an earlier try must not be taken for the end of this one.
        if (found) await runs.remove(name)
        store.begin(step, now())
        const input = JSON.stringify(work.order)
        await runs.start(name, process.execPath, [program, work.action], { timeoutMs, input })
      }
      return follow(name, { timeoutMs, since: 0 }, context)
    },
    async resume({ key, kind, timeoutMs, cursor }, context) {
      const name = runNameOf(key)
      if (kind === 'call' || !(await runs.find(name))) return { kind: 'unknown' }
      return follow(name, { timeoutMs, since: cursor }, context)
    },
    async forget(records) {
      for (const { key, kind } of records) if (kind === 'action') await runs.remove(runNameOf(key))
    },
  }
}

/** Ends some time after the signal, so that work which ignores its signal does not hold up everything. */
const ignored = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const end = () => void delay(graceMs, undefined, { ref: false }).then(resolve)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })

const unnamed = 'a step failed for a reason that it does not name'

function reasonOf(error: unknown, onUnnamed: (stack: string) => void): string {
  if (error instanceof StepFailed || error instanceof KubernetesError) return error.message
  onUnnamed(String(error instanceof Error ? error.stack : error))
  return error instanceof Error ? error.message : String(error)
}

const tooLong = (timeoutMs: number, last: string) =>
  `it did not end within ${Math.round(timeoutMs / 1_000)} s${last === '' ? '' : `; its last line: ${last}`}`

function endOf(end: RunEnd, timeoutMs: number, last: string): StepEnd {
  if (end.kind === 'gone') return { kind: 'unknown' }
  if (end.endedBy === 'stop') return { kind: 'unknown' }
  if (end.endedBy === 'time') return { kind: 'failed', reason: tooLong(timeoutMs, last) }
  switch (end.kind) {
    case 'exited':
      if (end.exitCode === 0) return { kind: 'done' }
      return { kind: 'failed', reason: last || `its program ended with exit code ${end.exitCode}` }
    case 'killed':
      return {
        kind: 'failed',
        reason: `its program was ended by ${end.signal}, as by the kernel when memory runs out (see: journalctl -k)`,
      }
    case 'not-started':
      return { kind: 'failed', reason: `its program could not be started: ${end.reason}` }
  }
}
