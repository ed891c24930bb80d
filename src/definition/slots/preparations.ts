import { stat } from 'node:fs/promises'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { Staged } from '../../upload/staging.ts'
import type { Examined } from '../examination/protocol.ts'
import type { DefinitionStore } from './definition-store.ts'
import type { SlotDefinition, SlotName } from './definition-table.ts'
import type { Delivered } from './delivered.ts'
import type { Examiner } from './examiner.ts'

export interface PreparationsOptions {
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
        ...{ ...examined, uid: staged.uid, slot, fileName, source },
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
