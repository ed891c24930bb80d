import { refuse } from '../../archive/refusal.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Logger } from '../../system/log.ts'
import type { CommandResult, CommandRunner, RunOptions } from '../../system/runner.ts'
import { createBatches } from './batches.ts'
import type {
  Examined,
  ExamineOrder,
  Finding,
  Named,
  NameOrder,
  Order,
  Published,
  PublishOrder,
  Unpacked,
  UnpackOrder,
  Verified,
  VerifyOrder,
} from './protocol.ts'

export interface ContentProgramOptions {
  readonly runner: CommandRunner
  /** Path of `content.cjs`. */
  readonly program: string
  readonly log: Logger
}

/** An archive that is being unpacked while it arrives. */
export interface Unpacking {
  /**
   * Passes on bytes of the archive, which it copies. Resolves when there is room for more; also when the program has
   * ended: `result` then says why.
   */
  write(chunk: Uint8Array): Promise<void>
  /** Passes on the last bytes. */
  end(): Promise<void>
  /** @throws AppError why the archive is refused, maybe before its end */
  readonly result: Promise<Unpacked>
  /** Ends the program; resolves when it writes no more. @param reason what `result` then throws */
  cancel(reason?: AppError): Promise<void>
}

/** What an order may be given beside itself. */
export interface Interruptible {
  /** Ends the program; its reason, an AppError, is thrown. */
  readonly signal?: AbortSignal
}

/** The work on bundles, done in a process of its own: src/content/program/main.ts. */
export interface ContentProgram {
  unpack(order: Omit<UnpackOrder, 'verb'>): Unpacking
  /** @throws AppError why the document is refused */
  name(order: Omit<NameOrder, 'verb'>): Promise<Named>
  /** @throws AppError why the bundle is refused */
  examine(order: Omit<ExamineOrder, 'verb'>, options?: Interruptible): Promise<Examined>
  /** @throws AppError if a blob is missing */
  publish(order: Omit<PublishOrder, 'verb'>, options?: Interruptible): Promise<Published>
  verify(order: Omit<VerifyOrder, 'verb'>, options?: Interruptible): Promise<Verified>
  /** Ends all running programs and starts no more; their results throw NotReady. */
  stop(): Promise<void>
}

// An upload may take long as long as bytes arrive, and a slow reading of blobs takes days.
const longestMs = 7 * 86_400_000
/** What each order may take; old space of V8 in MiB. */
const limits = {
  unpack: { timeoutMs: longestMs, memoryMiB: 96 },
  name: { timeoutMs: 60_000, memoryMiB: 160 },
  examine: { timeoutMs: 600_000, memoryMiB: 256 },
  publish: { timeoutMs: 600_000, memoryMiB: 128 },
  verify: { timeoutMs: longestMs, memoryMiB: 128 },
} as const
// After the last byte only what is in the pipe is left.
const restMs = 600_000
// Damaged digests; a record goes to a file.
const maxOutputBytes = 16_777_216
const memoryFlags = ['--max-semi-space-size=1']
// Out of memory: V8 calls abort(3), the kernel sends SIGKILL. Neither gives an exit code.
const isKilled = ({ exitCode }: CommandResult) => exitCode === undefined || exitCode > 128

/** @param options the runner, and the path of the program */
export function createContentProgram({ runner, program, log }: ContentProgramOptions): ContentProgram {
  const running = new Set<Promise<unknown>>()
  const stopping = new AbortController()

  /** @throws AppError; CommandFailed; an Error if the program failed */
  async function run(order: Order, options: Pick<RunOptions, 'input' | 'signal'>): Promise<Finding> {
    const { memoryMiB, timeoutMs } = limits[order.verb]
    const args = [...memoryFlags, `--max-old-space-size=${memoryMiB}`, program]
    const signals = [stopping.signal, ...(options.signal ? [options.signal] : [])]
    const signal = AbortSignal.any(signals)
    const result = await runner
      .run(process.execPath, args, { ...options, timeoutMs, maxOutputBytes, signal })
      .catch((error: unknown) => {
        throw signal.reason instanceof AppError ? signal.reason : error
      })
    if (isKilled(result))
      throw refuse('MemoryLimit', undefined, `needs more than ${memoryMiB} MiB to be processed`)
    if (result.exitCode !== 0) {
      log.error({ stderr: result.stderr.slice(0, 4_096) }, `${program} ${order.verb} failed`)
      throw new Error(`${program} failed; its output is in the previous line of the journal`)
    }
    const finding = JSON.parse(result.stdout) as Finding
    if (!('refused' in finding)) return finding
    const { kind, message, details } = finding.refused
    throw new AppError(kind, message, details ? { details } : {})
  }

  function track<T>(work: Promise<T>): Promise<T> {
    running.add(work)
    const forget = () => void running.delete(work)
    work.then(forget, forget)
    return work
  }

  const carryOut = (order: Order, { signal }: Interruptible = {}): Promise<Finding> => {
    const input = `${JSON.stringify(order)}\n`
    return track(run(order, { input, ...(signal ? { signal } : {}) }))
  }

  return {
    unpack(order) {
      const stop = new AbortController()
      const whole: Order = { verb: 'unpack', ...order }
      const batches = createBatches(`${JSON.stringify(whole)}\n`)
      let timer: NodeJS.Timeout | undefined
      const result = track(
        run(whole, { input: batches.pieces, signal: stop.signal })
          .then((finding) => expected(finding, 'unpacked'))
          .finally(() => {
            clearTimeout(timer)
            batches.discard()
          }),
      )
      return {
        result,
        write: batches.write,
        async end() {
          const overdue = () =>
            stop.abort(
              refuse('TimeLimit', undefined, `takes longer than ${restMs / 1_000} s after its last byte`),
            )
          timer = setTimeout(overdue, restMs).unref()
          await batches.end()
        },
        async cancel(reason) {
          stop.abort(reason)
          await result.catch(() => undefined)
        },
      }
    },
    async name(order) {
      return expected(await carryOut({ verb: 'name', ...order }), 'named')
    },
    async examine(order, options) {
      return expected(await carryOut({ verb: 'examine', ...order }, options), 'examined')
    },
    async publish(order, options) {
      return expected(await carryOut({ verb: 'publish', ...order }, options), 'published')
    },
    async verify(order, options) {
      return expected(await carryOut({ verb: 'verify', ...order }, options), 'verified')
    },
    async stop() {
      stopping.abort(
        new AppError(generalErrors.NotReady, 'the daemon is stopping; try again when it is running', {
          retryAfterSec: 30,
        }),
      )
      await Promise.allSettled(running)
    },
  }
}

interface Findings {
  readonly unpacked: Unpacked
  readonly named: Named
  readonly examined: Examined
  readonly published: Published
  readonly verified: Verified
}

function expected<Name extends keyof Findings>(finding: Finding, name: Name): Findings[Name] {
  if (!(name in finding)) throw new Error('content.cjs answered a different order')
  return (finding as Findings)[name]
}
