import { AppError } from '../../errors/app-error.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandResult, CommandRunner } from '../../system/runner.ts'
import { refuse } from '../archive/refusal.ts'
import { endLine, type Examined, type ExaminationOrder, type Finding } from '../examination/protocol.ts'

/** What an examination may cost. */
export interface ExaminationLimits {
  /** From the last byte of the archive. */
  readonly seconds: number
  readonly memoryMiB: number
}

export interface ExaminerOptions {
  readonly runner: CommandRunner
  /** Path of `examine.cjs`. */
  readonly program: string
  readonly settings: ExaminationLimits
  readonly log: Logger
}

/** An archive that is being examined while it arrives. */
export interface Examination {
  /** So many bytes of the archive can be read now. */
  written(sizeBytes: number): void
  /** There are no more. */
  end(): void
  /** @throws AppError why the archive is refused, maybe before its end */
  readonly result: Promise<Examined>
  /** Resolves when nothing is written any more. @param reason what `result` throws then */
  cancel(reason?: AppError): Promise<void>
}

export interface Examiner {
  begin(order: ExaminationOrder): Examination
  /** Cancels all that run and begins no more; their results throw NotReady. */
  stop(): Promise<void>
}

// An upload may take as long as it likes while it moves; from its end on the limit counts.
const longestMs = 7 * 86_400_000
const maxOutputBytes = 4_194_304
// With V8's own 16 MiB, 50 MB of YAML take 480 MiB instead of 310; the unit has 512 before it is slowed down.
const memoryFlags = ['--max-semi-space-size=4']
// V8 says it by abort(3), the kernel by SIGKILL; neither leaves an exit code.
const isKilled = ({ exitCode }: CommandResult) => exitCode === undefined || exitCode > 128

/** Examines archives in a process of its own: src/cluster/examination. */
export function createExaminer({ runner, program, settings, log }: ExaminerOptions): Examiner {
  const running = new Set<Examination>()
  let stopped: AppError | undefined
  return {
    async stop() {
      stopped = new AppError('NotReady', 'the daemon stops; ask again when it is back', { retryAfterSec: 30 })
      await Promise.all([...running].map((examination) => examination.cancel(stopped)))
    },
    begin(order) {
      const stop = new AbortController()
      const progress = createProgress(order)
      if (stopped) stop.abort(stopped)
      let timer: NodeJS.Timeout | undefined
      const run = async (): Promise<Examined> => {
        const args = [...memoryFlags, `--max-old-space-size=${settings.memoryMiB}`, program]
        const result = await runner
          .run(process.execPath, args, {
            ...{ timeoutMs: longestMs, maxOutputBytes },
            input: progress.lines,
            signal: stop.signal,
          })
          .catch((error: unknown) => {
            throw stop.signal.reason instanceof AppError ? stop.signal.reason : error
          })
        if (isKilled(result))
          throw refuse('MemoryLimit', undefined, `needs more than ${settings.memoryMiB} MiB to be checked`)
        if (result.exitCode !== 0) {
          log.error({ stderr: result.stderr.slice(0, 4_096) }, 'an archive could not be examined')
          throw new Error('an archive could not be examined; see the line before')
        }
        return read(result.stdout)
      }
      const result = run().finally(() => {
        clearTimeout(timer)
        running.delete(examination)
      })
      // Whoever begins may first have the upload to look after.
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

function read(stdout: string): Examined {
  const finding = JSON.parse(stdout) as Finding
  if ('examined' in finding) return finding.examined
  const { code, message, details } = finding.refused
  throw new AppError(code, message, details ? { details } : {})
}

/** What the examination is told, the newest number only. */
function createProgress(order: ExaminationOrder) {
  let available = 0
  let isEnded = false
  let news = Promise.withResolvers()
  const tell = () => {
    news.resolve(undefined)
    news = Promise.withResolvers()
  }
  async function* lines(): AsyncGenerator<string> {
    yield `${JSON.stringify(order)}\n`
    for (let said = 0; ;) {
      if (available > said) yield `${(said = available)}\n`
      else if (isEnded) break
      else await news.promise
    }
    yield `${endLine}\n`
  }
  return {
    lines: lines(),
    written(sizeBytes: number) {
      available = sizeBytes
      tell()
    },
    end() {
      isEnded = true
      tell()
    },
  }
}
