import { join } from 'node:path'
import { receivedFile, receiveUpload, type UploadPart } from '../../upload/receive.ts'
import type { SigningKey } from '../../upload/signing.ts'
import { createRunningUploads } from '../../upload/running.ts'
import type { Clock } from '../../system/clock.ts'
import { spaceOf } from '../../system/file-sizes.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { DefinitionSettings } from '../config.ts'
import type { Staged } from '../../upload/staging.ts'
import type { DefinitionStore } from './definition-store.ts'
import type { SlotDefinition, SlotName } from './definition-table.ts'
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
  /** Called when all bytes have arrived; the check may still take a while. */
  readonly onReceived: () => void
  /** Ends the upload with its reason, an AppError, also during the check. */
  readonly signal: AbortSignal
}

/**
 * Receives an upload, examines it while it arrives, and puts it into its slot when it is valid and on the disk.
 * With a signing key, the examination begins when the signature has been verified.
 * @throws AppError of `receiveUpload` and of the examination; the slot is then unchanged
 */
export type ReceiveUpload = (form: UploadForm) => Promise<SlotDefinition>

export interface Uploads {
  readonly receive: ReceiveUpload
  /** Ends running uploads, each with a refusal; resolves when their files are removed. */
  stop(): Promise<void>
}

export function createUploads(options: UploadsOptions): Uploads {
  const { store, examiner, settings, limits, signingKey, slotOf, clock } = options
  const running = createRunningUploads({ maximum: settings.maximum, what: 'definitions' })

  async function receiveInto(
    { parts, expectedBytes, onReceived }: UploadForm,
    staged: Staged,
    refused: AbortController,
  ): Promise<SlotDefinition> {
    let examination: Examination | undefined
    refused.signal.addEventListener('abort', () => void examination?.cancel())
    const begin = () => {
      const order = {
        ...{ file: join(staged.folder, receivedFile), folder: staged.folder, isHashed: false },
        ...{ limits, reserveBytes: settings.reserveBytes },
      }
      const begun = examiner.begin(order)
      begun.result.catch((reason: unknown) => refused.abort(reason))
      return begun
    }
    try {
      const { sizeBytes, sha256, fileName } = await receiveUpload({
        ...{ parts: parts(refused.signal), expectedBytes, signingKey, signal: refused.signal },
        folder: staged.folder,
        limitBytes: settings.limitBytes,
        reserveBytes: settings.reserveBytes,
        // If the free space is unknown, a write to a full disk fails by itself.
        freeBytes: async () => (await spaceOf(store.folder))?.freeBytes ?? Number.MAX_SAFE_INTEGER,
        ...(signingKey ? {} : { onWritten: (bytes) => (examination ??= begin()).written(bytes) }),
      })
      onReceived()
      examination ??= begin()
      examination.written(sizeBytes)
      examination.end()
      const { name, version, problems } = await examination.result
      refused.signal.throwIfAborted()
      const definition: SlotDefinition = {
        ...{ uid: staged.uid, slot: slotOf(), name, version, sha256, sizeBytes, fileName, problems },
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
    }
  }

  return {
    receive: (form) =>
      running.run(form.signal, async (refused) => receiveInto(form, await store.stage(), refused)),
    async stop() {
      await Promise.all([running.stop(), examiner.stop()])
    },
  }
}
