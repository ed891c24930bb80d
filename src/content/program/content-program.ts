import { refuse } from '../../archive/refusal.ts'
import type { AppError } from '../../errors/app-error.ts'
import { stoppingError } from '../../errors/stopping.ts'
import { runWorker, type WorkerOptions } from '../../program/run-worker.ts'
import type { RunOptions } from '../../system/runner.ts'
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

/** Bytes that one side writes and a program reads, in large pieces. */
export interface Batches {
  /** Each piece is used until the next one is asked for. */
  readonly pieces: AsyncIterable<string | Uint8Array>
  /** Copies the bytes; resolves when there is room for more. */
  write(chunk: Uint8Array): Promise<void>
  /** Writes the rest; no more follows. */
  end(): Promise<void>
  /** No piece is asked for any more: bytes written from now on are thrown away. */
  discard(): void
}

// Larger than the buffer of a Unix socket. There are two: one fills while the other one is being sent.
const batchBytes = 524_288

/** @param first a line that goes before all bytes */
export function createBatches(first: string): Batches {
  let filling = Buffer.allocUnsafeSlow(batchBytes)
  let resting = Buffer.allocUnsafeSlow(batchBytes)
  let filled = 0
  let isEnded = false
  let isDiscarded = false
  /** The batch that waits to be sent or is being sent. */
  let sent: { readonly bytes: Uint8Array; readonly isSent: PromiseWithResolvers<unknown> } | undefined
  let arrived = Promise.withResolvers()

  async function* pieces(): AsyncGenerator<string | Uint8Array> {
    yield first
    for (;;) {
      if (sent !== undefined) {
        yield sent.bytes
        const { isSent } = sent
        sent = undefined
        isSent.resolve(undefined)
      } else if (isEnded) return
      else {
        await arrived.promise
        arrived = Promise.withResolvers()
      }
    }
  }

  // Waits for the previous batch, not for this one.
  async function passOn(): Promise<void> {
    await sent?.isSent.promise
    if (!isDiscarded) {
      sent = { bytes: filling.subarray(0, filled), isSent: Promise.withResolvers() }
      arrived.resolve(undefined)
    }
    ;[filling, resting, filled] = [resting, filling, 0]
  }

  return {
    pieces: pieces(),
    async write(chunk) {
      for (let at = 0; at < chunk.length && !isDiscarded;) {
        const part = chunk.subarray(at, at + batchBytes - filled)
        filling.set(part, filled)
        filled += part.length
        at += part.length
        if (filled === batchBytes) await passOn()
      }
    },
    async end() {
      if (filled > 0) await passOn()
      isEnded = true
      arrived.resolve(undefined)
    },
    discard() {
      isDiscarded = true
      isEnded = true
      arrived.resolve(undefined)
      sent?.isSent.resolve(undefined)
      sent = undefined
    },
  }
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

/** Options of an order. */
interface Interruptible {
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
/** Limits of each order; old space of V8 in MiB. */
const limits = {
  unpack: { timeoutMs: longestMs, memoryMiB: 96 },
  name: { timeoutMs: 60_000, memoryMiB: 160 },
  examine: { timeoutMs: 600_000, memoryMiB: 256 },
  publish: { timeoutMs: 600_000, memoryMiB: 128 },
  verify: { timeoutMs: longestMs, memoryMiB: 128 },
} as const
// After the last byte only the content of the pipe is left.
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
      memoryMiB,
      semiSpaceMiB,
      timeoutMs,
      maxOutputBytes,
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
