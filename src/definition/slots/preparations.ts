import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { Staged } from '../../upload/staging.ts'
import type { Examined } from '../examination/protocol.ts'
import type { DefinitionStore, SlotDefinition } from './definition-store.ts'
import type { SlotName } from './slot-names.ts'
import type { Examiner } from './examiner.ts'

/** The definition in a published content bundle. */
export interface BundledDefinition {
  readonly bundleUid: string
  /** Name of the bundle. */
  readonly name: string
  /** Milliseconds since 1970, UTC. */
  readonly publishedAt: number
  /** The blob with the archive. */
  readonly file: string
  readonly sizeBytes: number
}

/** A definition that came without an upload of its own: as the installer's file, or in a content bundle. */
export interface Delivered extends Origin {
  readonly file: string
  readonly sizeBytes: number
  readonly fileName: string
}

/** Origin of a definition, as its `source` in the slot says. */
export interface Origin {
  readonly kind: 'file' | 'bundle'
  /** Identifies the delivered state, and the version of the daemon that examined it. */
  readonly source: string
  /** Time of delivery, milliseconds since 1970, UTC: the time of the file, or the publication of the bundle. */
  readonly at: number
  /** Empty for a file. */
  readonly bundleUid: string
}

/**
 * The definition that an installer placed.
 * @returns undefined if there is no file. @throws the system's errors; an Error if it is not a regular file
 */
export async function deliveredByFile(file: string, version: string): Promise<Delivered | undefined> {
  const found = await stat(file, { bigint: true }).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  })
  if (!found) return undefined
  if (!found.isFile()) throw new Error(`${file} is not a regular file`)
  const { size, mtimeNs, ctimeNs, ino } = found
  // Every attribute that changes with the content of the file.
  const origin = originOf(`${size} ${mtimeNs} ${ctimeNs} ${ino} ${version}`)
  return { ...origin, file, sizeBytes: Number(size), fileName: basename(file) }
}

/** The definition of a bundle, to be examined by this version of the daemon. */
export function deliveredByBundle(
  { bundleUid, name, publishedAt, file, sizeBytes }: BundledDefinition,
  version: string,
): Delivered {
  const origin = originOf(`${bundleWord} ${bundleUid} ${publishedAt} ${version}`)
  return { ...origin, file, sizeBytes, fileName: name }
}

const bundleWord = 'bundle'

/** Reads the `source` of a definition that was delivered. */
export function originOf(source: string): Origin {
  const [first, second = '', third] = source.split(' ')
  return first === bundleWord
    ? { kind: 'bundle', source, at: Number(third), bundleUid: second }
    : { kind: 'file', source, at: Number(BigInt(second) / 1_000_000n), bundleUid: '' }
}

interface PreparationsOptions {
  readonly store: DefinitionStore
  readonly examiner: Examiner
  readonly limits: Partial<ArchiveLimits>
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
  readonly clock: Pick<Clock, 'now'>
}

/** Delivered definitions, examined where they lie: only the results of the examination are in the staging folder. */
export interface Preparations {
  /**
   * Examines a definition that will be put into a slot later.
   * @param signal ends the examination with its reason, an AppError
   * @returns removes the results, unless they are in a slot
   * @throws AppError why it is refused, NotReady if the daemon stops; ENOENT if its file is missing
   */
  prepare(delivered: Delivered, signal: AbortSignal | undefined): Promise<() => Promise<void>>
  /** Puts a definition into a slot; examines it if it is not prepared. @throws what `prepare` throws */
  put(slot: SlotName, delivered: Delivered): Promise<SlotDefinition>
}

interface Prepared {
  readonly staged: Staged
  readonly examined: Examined
}

export function createPreparations(options: PreparationsOptions): Preparations {
  const { store, examiner, limits, reserveBytes, clock } = options
  const prepared = new Map<string, Prepared>()

  async function examine({ file, sizeBytes }: Delivered, signal?: AbortSignal): Promise<Prepared> {
    await stat(file)
    const staged = await store.stage()
    const order = { file, folder: staged.folder, limits, reserveBytes, isHashed: true }
    const examination = examiner.begin(order)
    const cancel = () => void examination.cancel(signal?.reason as AppError)
    signal?.addEventListener('abort', cancel)
    if (signal?.aborted) cancel()
    try {
      examination.written(sizeBytes)
      examination.end()
      return { staged, examined: await examination.result }
    } catch (error) {
      await store.removeStaged(staged)
      throw error
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  return {
    async prepare(delivered, signal) {
      const { source } = delivered
      const own = await examine(delivered, signal)
      prepared.set(source, own)
      return async () => {
        if (prepared.get(source) === own) prepared.delete(source)
        await store.removeStaged(own.staged)
      }
    },
    async put(slot, delivered) {
      const { source, fileName } = delivered
      const known = prepared.get(source)
      prepared.delete(source)
      const { staged, examined } = known ?? (await examine(delivered))
      const definition: SlotDefinition = {
        ...examined,
        uid: staged.uid,
        slot,
        fileName,
        source,
        addedAt: clock.now(),
      }
      try {
        await store.commit(staged, definition)
      } catch (error) {
        await store.removeStaged(staged)
        throw error
      }
      return definition
    },
  }
}
