import { refuse } from '../../archive/refusal.ts'
import type { AppError } from '../../errors/app-error.ts'
import { stoppingError } from '../../errors/stopping.ts'
import { runWorker, type WorkerOptions } from '../../program/run-worker.ts'
import type { RunOptions } from '../../system/runner.ts'
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
const semiSpaceMiB = 1

/** @param worker the runner, and the path of `content.cjs` */
export function createContentProgram(worker: WorkerOptions): ContentProgram {
  const running = new Set<Promise<unknown>>()
  const stopping = new AbortController()

  /** @throws AppError; CommandFailed; an Error if the program failed */
  function run(order: Order, { input, signal }: Pick<RunOptions, 'input' | 'signal'>) {
    const { memoryMiB, timeoutMs } = limits[order.verb]
    return runWorker<Finding>(worker, {
      ...{ memoryMiB, semiSpaceMiB, timeoutMs, maxOutputBytes },
      ...(input === undefined ? {} : { input }),
      signal: AbortSignal.any([stopping.signal, ...(signal ? [signal] : [])]),
      tooMuch: () => refuse('MemoryLimit', undefined, `needs more than ${memoryMiB} MiB to be processed`),
    })
  }

  function track<T>(work: Promise<T>): Promise<T> {
    running.add(work)
    const forget = () => void running.delete(work)
    work.then(forget, forget)
    return work
  }

  const carryOut = (order: Order, { signal }: Interruptible = {}) => {
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
      stopping.abort(stoppingError())
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
