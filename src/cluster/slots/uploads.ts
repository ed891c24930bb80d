import { join } from 'node:path'
import { receiveUpload, type UploadPart } from '../../content/receive.ts'
import type { SigningKey } from '../../content/signing.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import { spaceOf } from '../../system/file-sizes.ts'
import type { ArchiveLimits } from '../archive/limits.ts'
import type { DefinitionStore, Staging } from './definition-store.ts'
import type { SlotDefinition, SlotName } from './definition-table.ts'
import type { Examination, Examiner } from './examiner.ts'

export interface UploadSettings {
  /** Most bytes of an archive. */
  readonly limitBytes: number
  /** What stays free on the disk. */
  readonly reserveBytes: number
  /** At one time. */
  readonly maximum: number
}

export interface UploadsOptions {
  readonly store: DefinitionStore
  readonly examiner: Examiner
  readonly settings: UploadSettings
  readonly limits: Partial<ArchiveLimits>
  readonly signingKey: SigningKey | undefined
  /** Where an upload goes now. */
  readonly slotOf: () => SlotName
  readonly clock: Pick<Clock, 'now'>
}

/** A form as it arrives. */
export interface UploadForm {
  readonly parts: AsyncIterable<UploadPart>
  /** Content-Length, where it is known. */
  readonly expectedBytes: number | undefined
  /** Told when all bytes are there; the check may still take a while. */
  readonly onReceived: () => void
}

/**
 * Takes an upload: received, examined while it arrives, and put into its slot when all of it is good and on the disk.
 * With a key, it is examined only once its signature is found right.
 * @throws AppError of `receiveUpload` and of the examination; the slot then holds what it held
 */
export type TakeUpload = (form: UploadForm) => Promise<SlotDefinition>

const retryAfterSec = 30

export function createUploads(options: UploadsOptions): TakeUpload {
  const { store, examiner, settings, limits, signingKey, slotOf, clock } = options
  let running = 0

  async function take({ parts, expectedBytes, onReceived }: UploadForm, staging: Staging) {
    const refused = new AbortController()
    let examination: Examination | undefined
    const begin = () => {
      const order = { file: join(staging.folder, 'archive'), folder: staging.folder, limits, isHashed: false }
      const begun = examiner.begin(order)
      begun.result.catch((reason: unknown) => refused.abort(reason))
      return begun
    }
    try {
      const { sizeBytes, sha256, fileName } = await receiveUpload({
        ...{ parts, expectedBytes, signingKey, signal: refused.signal },
        folder: staging.folder,
        limitBytes: settings.limitBytes,
        reserveBytes: settings.reserveBytes,
        // Where nobody can say it, the write itself will.
        freeBytes: async () => (await spaceOf(store.folder))?.freeBytes ?? Number.MAX_SAFE_INTEGER,
        ...(signingKey ? {} : { onWritten: (bytes) => (examination ??= begin()).written(bytes) }),
      })
      onReceived()
      examination ??= begin()
      examination.written(sizeBytes)
      examination.end()
      const { name, version, problems } = await examination.result
      const definition: SlotDefinition = {
        ...{ uid: staging.uid, slot: slotOf(), name, version, sha256, sizeBytes, fileName, problems },
        addedAt: clock.now(),
        source: '',
      }
      await store.commit(staging, definition)
      return definition
    } catch (error) {
      await examination?.cancel()
      await store.discard(staging)
      throw error
    }
  }

  return async (form) => {
    if (running >= settings.maximum)
      throw new AppError(
        'TooManyUploads',
        `${settings.maximum} definitions are being uploaded; wait until one is done`,
        { retryAfterSec },
      )
    running += 1
    try {
      return await take(form, await store.stage())
    } finally {
      running -= 1
    }
  }
}
