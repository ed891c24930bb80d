import { createFairTurns } from '../base/fair-queue.ts'
import { importErrors } from '../definition/codes.ts'
import {
  type ClusterOrder,
  type ExaminedCluster,
  type ExaminedExport,
  type ExaminedPack,
  type ExportOrder,
  type Finding,
  type PackOrder,
  endLine,
} from '../definition/examination/protocol.ts'
import { refuse } from '../archive/refusal.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { stoppingError } from '../errors/stopping.ts'
import { runWorker, type WorkerOptions } from '../program/run-worker.ts'
import { CommandFailed } from '../system/runner.ts'
import { platformErrors } from './codes.ts'

/** The caller of an examination. */
export interface ExaminationCaller {
  /** Projects take turns, and their callers within them, so that many requests of one do not keep the others waiting. */
  readonly projectUid: string
  readonly name: string
  /** Ends the examination, waiting or running, with its reason, an AppError. */
  readonly signal: AbortSignal
}

export type ProfileText = Buffer | AsyncIterable<Buffer>

/** Examines what users send, and builds definitions, in a process of its own: `examine.cjs`, src/definition/examination. */
export interface Examinations {
  /** @throws AppError why the pack is refused; NotReady if too many wait */
  pack(order: PackOrder['pack'], caller: ExaminationCaller): Promise<ExaminedPack>
  /** @param text the profile as it was sent, whole or in pieces. @throws AppError why it is refused; NotReady if too many wait */
  profile(
    order: ExportOrder['profile'],
    text: ProfileText,
    caller: ExaminationCaller,
  ): Promise<ExaminedExport>
  /**
   * @param requireSame called when its turn has come; throws if what the order names has changed since
   * @throws AppError of the disk; NotReady if too many wait
   */
  cluster(
    order: ClusterOrder['cluster'],
    caller: ExaminationCaller,
    requireSame: () => void,
  ): Promise<ExaminedCluster>
  /** Ends all; resolves when no process writes any more. */
  stop(): Promise<void>
}

// One at a time: two would exceed the memory of the unit.
const memoryMiB = 384
const semiSpaceMiB = 4
const timeoutMs = 300_000
// Names of files and variables; `examine-export.ts` bounds the latter.
const maxOutputBytes = 16_777_216
/** Uploads and imports of all users that are not finished: each has a file on the disk, and some 200 KiB in the connection. */
export const mostUploads = 128
// Complete uploads are not refused for others; clusters wait beside them.
export const mostWaiting = mostUploads + 16
const pieceBytes = 786_432

export function createExaminations(worker: WorkerOptions): Examinations {
  const turns = createFairTurns({
    atOnce: 1,
    waiting: mostWaiting,
    refusal: () =>
      new AppError(generalErrors.NotReady, 'too many uploads and clusters are being examined; try again', {
        retryAfterSec: 10,
      }),
  })
  const stopping = new AbortController()
  let running: Promise<unknown> = Promise.resolve()

  async function run(
    input: AsyncIterable<string>,
    caller: ExaminationCaller,
    refuseCost: (reason: Cost, what: string) => AppError,
    onTurn?: () => void,
  ): Promise<Finding> {
    const signal = AbortSignal.any([caller.signal, stopping.signal])
    const work = async () => {
      signal.throwIfAborted()
      onTurn?.()
      const finding = runWorker<Finding>(worker, {
        memoryMiB,
        semiSpaceMiB,
        timeoutMs,
        maxOutputBytes,
        signal,
        input,
        tooMuch: () => refuseCost('MemoryLimit', `needs more than ${memoryMiB} MiB to be checked`),
      }).catch((error: unknown) => {
        if (!(error instanceof CommandFailed)) throw error
        if (error.reason === 'timed-out')
          throw refuseCost('TimeLimit', `takes longer than ${timeoutMs / 1_000} s to check`)
        if (error.reason === 'output-too-large')
          throw refuseCost('TooLarge', 'has more names and variables than can be kept')
        throw error
      })
      running = finding.catch(() => undefined)
      return finding
    }
    // An examination whose client is gone keeps no place in the queue.
    return turns.run({ group: caller.projectUid, member: caller.name }, work, signal)
  }

  return {
    async pack(order, caller) {
      const finding = await run(lines({ pack: order }), caller, (reason, what) =>
        refuse(reason, undefined, what),
      )
      if ('pack' in finding) return finding.pack
      throw otherOrder()
    },
    async profile(order, text, caller) {
      const finding = await run(lines({ profile: order }, text), caller, refuseProfile)
      if ('profile' in finding) return finding.profile
      throw otherOrder()
    },
    async cluster(order, caller, requireSame) {
      const finding = await run(lines({ cluster: order }), caller, refuseCluster, requireSame)
      if ('cluster' in finding) return finding.cluster
      throw otherOrder()
    },
    async stop() {
      stopping.abort(stoppingError())
      await running
    },
  }
}

type Cost = 'MemoryLimit' | 'TimeLimit' | 'TooLarge'

const refuseProfile = (reason: Cost, what: string) =>
  new AppError(importErrors.ProfileInvalid, `the profile ${what}`, { details: { reason } })

const refuseCluster = (reason: Cost, what: string) =>
  new AppError(platformErrors.ClusterInvalid, `the definition of the cluster ${what}`, {
    details: { reason },
  })

async function* lines(
  order: PackOrder | ExportOrder | ClusterOrder,
  text?: ProfileText,
): AsyncGenerator<string> {
  yield `${JSON.stringify(order)}\n`
  if (text === undefined) return
  for await (const part of Buffer.isBuffer(text) ? [text] : text)
    for (let at = 0; at < part.length; at += pieceBytes)
      yield `${part.toString('base64', at, Math.min(part.length, at + pieceBytes))}\n`
  yield `${endLine}\n`
}

const otherOrder = () => new Error('examine.cjs answered a different order')
