import { AppError } from '../../errors/app-error.ts'
import type { DefinitionSettings } from '../config.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Logger } from '../../system/log.ts'
import {
  CommandFailed,
  type CommandResult,
  type CommandRunner,
  type RunOptions,
} from '../../system/runner.ts'
import { refuse } from '../../archive/refusal.ts'
import {
  endLine,
  type Examined,
  type ExaminationOrder,
  type Finding,
  type Judgement,
  type JudgementOrder,
} from '../examination/protocol.ts'

export interface ExaminerOptions {
  readonly runner: CommandRunner
  /** Path of `examine.cjs`. */
  readonly program: string
  /** What an examination may cost. */
  readonly settings: DefinitionSettings['check']
  readonly log: Logger
}

/** An archive that is being examined while it arrives. */
export interface Examination {
  /** Reports how many bytes of the archive can be read now. */
  written(sizeBytes: number): void
  /** Reports that the archive is complete. */
  end(): void
  /** @throws AppError why the archive is refused, maybe before its end */
  readonly result: Promise<Examined>
  /** Ends the examination; resolves when its process writes no more. @param reason what `result` then throws */
  cancel(reason?: AppError): Promise<void>
}

export interface Examiner {
  begin(order: ExaminationOrder): Examination
  /**
   * Judges values, one order at a time.
   * @throws AppError BadRequest if it takes too long or too much memory, NotReady if too many orders wait
   */
  judge(order: JudgementOrder): Promise<Judgement>
  /** Cancels all running examinations and begins no more; their results throw NotReady. */
  stop(): Promise<void>
}

// An upload may take long as long as bytes arrive. The configured limit starts at its last byte.
const longestMs = 7 * 86_400_000
const maxOutputBytes = 4_194_304
// Limits for judging values: several times what the largest allowed patterns take. A request waits for the judgement.
const judgement = { timeoutMs: 20_000, memoryMiB: 192, maxOutputBytes: 16_777_216, waiting: 4 }
// With V8's default of 16 MiB, 50 MB of YAML take 480 MiB instead of 310; above 512 MiB the unit is throttled (MemoryHigh).
const memoryFlags = ['--max-semi-space-size=4']
// Out of memory: V8 calls abort(3), the kernel sends SIGKILL. Neither gives an exit code.
const isKilled = ({ exitCode }: CommandResult) => exitCode === undefined || exitCode > 128

/** Examines archives, and judges values, in a process of its own: src/definition/examination. */
export function createExaminer({ runner, program, settings, log }: ExaminerOptions): Examiner {
  const running = new Set<Examination>()
  const judging = new AbortController()
  let waiting = 0
  let lastJudgement: Promise<unknown> = Promise.resolve()
  let stopped: AppError | undefined

  /** @throws CommandFailed; the reason of the signal; `tooMuch()`; an Error if the program failed */
  async function run(memoryMiB: number, options: RunOptions, tooMuch: () => AppError): Promise<Finding> {
    const args = [...memoryFlags, `--max-old-space-size=${memoryMiB}`, program]
    const result = await runner.run(process.execPath, args, options).catch((error: unknown) => {
      throw options.signal?.reason instanceof AppError ? options.signal.reason : error
    })
    if (isKilled(result)) throw tooMuch()
    if (result.exitCode !== 0) {
      log.error({ stderr: result.stderr.slice(0, 4_096) }, `${program} failed`)
      throw new Error(`${program} failed; its output is in the previous line of the journal`)
    }
    return JSON.parse(result.stdout) as Finding
  }

  async function judgeNow(order: JudgementOrder): Promise<Judgement> {
    const { memoryMiB, timeoutMs, maxOutputBytes: most } = judgement
    const options = { timeoutMs, maxOutputBytes: most, signal: judging.signal }
    const input = `${JSON.stringify(order)}\n`
    const finding = await run(memoryMiB, { ...options, input }, () =>
      tooCostly(`take more than ${memoryMiB} MiB`),
    ).catch((error: unknown) => {
      if (!(error instanceof CommandFailed)) throw error
      if (error.reason === 'timed-out') throw tooCostly(`take longer than ${timeoutMs / 1_000} s`)
      if (error.reason === 'output-too-large') throw tooCostly(`give a reply of more than ${most} bytes`)
      throw error
    })
    if ('judged' in finding) return finding.judged
    throw unexpected(finding)
  }

  return {
    async stop() {
      stopped = new AppError(generalErrors.NotReady, 'the daemon is stopping; try again when it is running', {
        retryAfterSec: 30,
      })
      judging.abort(stopped)
      await Promise.all([
        lastJudgement.catch(() => undefined),
        ...[...running].map((examination) => examination.cancel(stopped)),
      ])
    },
    async judge(order) {
      if (waiting >= judgement.waiting)
        throw new AppError(generalErrors.NotReady, 'values for other variables are being judged; try again', {
          retryAfterSec: 5,
        })
      waiting += 1
      const turn = lastJudgement.then(
        () => judgeNow(order),
        () => judgeNow(order),
      )
      lastJudgement = turn
      return turn.finally(() => (waiting -= 1))
    },
    begin(order) {
      const stop = new AbortController()
      const progress = createProgress(order)
      if (stopped) stop.abort(stopped)
      let timer: NodeJS.Timeout | undefined
      const { memoryMiB } = settings
      const options = { timeoutMs: longestMs, maxOutputBytes, input: progress.lines, signal: stop.signal }
      const result = run(memoryMiB, options, () =>
        refuse('MemoryLimit', undefined, `needs more than ${memoryMiB} MiB to be checked`),
      )
        .then((finding) => {
          if ('examined' in finding) return finding.examined
          throw unexpected(finding)
        })
        .finally(() => {
          clearTimeout(timer)
          running.delete(examination)
        })
      // The caller may read the upload before it awaits the result; until then a rejection is not unhandled.
      result.catch(() => undefined)
      const examination: Examination = {
        result,
        written: progress.written,
        end() {
          progress.end()
          const overdue = () =>
            stop.abort(refuse('TimeLimit', undefined, `takes longer than ${settings.seconds} s to check`))
          timer = setTimeout(overdue, settings.seconds * 1_000).unref()
        },
        async cancel(reason) {
          stop.abort(reason)
          await result.catch(() => undefined)
        },
      }
      running.add(examination)
      return examination
    },
  }
}

function unexpected(finding: Finding): Error {
  if (!('refused' in finding)) return new Error('examine.cjs answered a different order')
  const { kind, message, details } = finding.refused
  return new AppError(kind, message, details ? { details } : {})
}

const tooCostly = (what: string) =>
  new AppError(
    generalErrors.BadRequest,
    `to judge values by the patterns of this definition would ${what}; give fewer and shorter values, or upload the definition with smaller patterns`,
    { details: { field: 'variables' } },
  )

/** The input of the program: the order, then only the newest number of bytes. */
function createProgress(order: ExaminationOrder) {
  let available = 0
  let isEnded = false
  let changed = Promise.withResolvers()
  const notify = () => {
    changed.resolve(undefined)
    changed = Promise.withResolvers()
  }
  async function* lines(): AsyncGenerator<string> {
    yield `${JSON.stringify(order)}\n`
    for (let reported = 0; ;) {
      if (available > reported) yield `${(reported = available)}\n`
      else if (isEnded) break
      else await changed.promise
    }
    yield `${endLine}\n`
  }
  return {
    lines: lines(),
    written(sizeBytes: number) {
      available = sizeBytes
      notify()
    },
    end() {
      isEnded = true
      notify()
    },
  }
}
