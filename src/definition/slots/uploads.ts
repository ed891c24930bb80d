import { join } from 'node:path'
import { createFairTurns } from '../../base/fair-queue.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import {
  freeBytesOf,
  receivedFile,
  receiveUpload,
  uploadField,
  type UploadPart,
} from '../../upload/receive.ts'
import type { SigningKey } from '../../upload/signing.ts'
import {
  createRunningUploads,
  usualWaitSeconds,
  type RunningUpload,
  type Uploader,
} from '../../upload/running.ts'
import type { Clock } from '../../system/clock.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { DefinitionSettings } from '../config.ts'
import type { Staged } from '../../upload/staging.ts'
import type { DefinitionStore, SlotDefinition } from './definition-store.ts'
import type { SlotName } from './slot-names.ts'
import type { Examination, Examiner } from './examiner.ts'

export interface UploadsOptions {
  readonly store: DefinitionStore
  readonly examiner: Examiner
  readonly settings: DefinitionSettings['upload']
  readonly limits: Partial<ArchiveLimits>
  readonly signingKey: SigningKey | undefined
  /** The slot into which an upload is put now. */
  readonly slotOf: () => SlotName
  readonly clock: Pick<Clock, 'now'>
}

/** A form that is arriving. */
export interface UploadForm {
  /** @param signal ends the parts with its reason, an AppError */
  readonly parts: (signal: AbortSignal) => AsyncIterable<UploadPart>
  /** Content-Length, if known. */
  readonly expectedBytes: number | undefined
  /** Its signal ends the upload also during the check. */
  readonly uploader: Uploader
}

/**
 * Receives an upload, examines it while it arrives, and puts it into its slot when it is valid and on the disk.
 * With a signing key, the examination begins when the signature has been verified.
 * @throws AppError of `receiveUpload` and of the examination; the slot is then unchanged
 */
export type ReceiveUpload = (form: UploadForm) => Promise<SlotDefinition>

export interface Uploads {
  readonly receive: ReceiveUpload
  /** Number of uploads that arrive, wait or are examined. */
  count(): number
  /** Ends running uploads, each with a refusal; resolves when their files are removed. */
  stop(): Promise<void>
}

/** Definitions that are being uploaded, whether they arrive or wait: each has its file on the disk. */
const mostUnfinished = 16
const mostOfUser = 8
const retryAfterSec = 10

export function createUploads(options: UploadsOptions): Uploads {
  const { store, examiner, settings, limits, signingKey, slotOf, clock } = options
  const { maximum } = settings
  const running = createRunningUploads({
    what: 'definitions',
    field: uploadField,
    maximum,
    ofUser: mostOfUser,
    ofAll: mostUnfinished,
    waitSeconds: usualWaitSeconds,
  })
  // A body that arrives slowly keeps its process, so at least one is there for those that are whole.
  const whole = createFairTurns({
    atOnce: 1,
    waiting: mostUnfinished,
    refusal: () =>
      new AppError(generalErrors.NotReady, 'too many definitions are being checked; try again', {
        retryAfterSec,
      }),
  })
  let early = 0

  async function receiveInto(
    { parts, expectedBytes, uploader }: UploadForm,
    staged: Staged,
    { refused, place }: RunningUpload,
  ): Promise<SlotDefinition> {
    let examination: Examination | undefined
    const isEarly = signingKey === undefined && early < maximum - 1
    if (isEarly) early += 1
    refused.signal.addEventListener('abort', () => void examination?.cancel())
    const begin = () => {
      const order = {
        file: join(staged.folder, receivedFile),
        folder: staged.folder,
        isHashed: false,
        limits,
        reserveBytes: settings.reserveBytes,
      }
      const started = examiner.begin(order)
      started.result.catch((reason: unknown) => refused.abort(reason))
      return started
    }
    try {
      const { sizeBytes, sha256, fileName } = await receiveUpload({
        parts: parts(refused.signal),
        expectedBytes,
        signingKey,
        place,
        signal: refused.signal,
        folder: staged.folder,
        limitBytes: settings.limitBytes,
        reserveBytes: settings.reserveBytes,
        freeBytes: () => freeBytesOf(store.folder),
        ...(isEarly ? { onWritten: (bytes) => (examination ??= begin()).written(bytes) } : {}),
      })
      const finish = () => {
        examination ??= begin()
        examination.written(sizeBytes)
        examination.end()
        return examination.result
      }
      const turn = { group: uploader.name, member: '' }
      const { name, version, problems } = await (isEarly ? finish() : whole.run(turn, finish, refused.signal))
      refused.signal.throwIfAborted()
      const definition: SlotDefinition = {
        uid: staged.uid,
        slot: slotOf(),
        name,
        version,
        sha256,
        sizeBytes,
        fileName,
        problems,
        addedAt: clock.now(),
        source: '',
      }
      await store.commit(staged, definition, refused.signal)
      return definition
    } catch (error) {
      // If the upload was ended, the client gets that reason, not an error that followed from it.
      const reason: unknown = refused.signal.aborted ? refused.signal.reason : error
      await examination?.cancel()
      await store.removeStaged(staged)
      throw reason
    } finally {
      if (isEarly) early -= 1
    }
  }

  return {
    receive: (form) =>
      running.run(form.uploader, async (upload) => receiveInto(form, await store.stage(), upload)),
    count: running.count,
    async stop() {
      await Promise.all([running.stop(), examiner.stop()])
    },
  }
}
