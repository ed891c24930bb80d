import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { SystemEntry } from '../../audit/own-entries.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { Problem } from '../definition.ts'
import type { DefinitionStore } from './definition-store.ts'
import type { SlotDefinition } from './definition-table.ts'
import type { Examiner } from './examiner.ts'

export interface EmbeddedOptions {
  /** Where an installer puts the definition; the file need not exist. */
  readonly file: string
  readonly store: DefinitionStore
  readonly examiner: Examiner
  readonly limits: Partial<ArchiveLimits>
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
  /** Version of the daemon. A file that another version examined is examined again. */
  readonly version: string
  readonly record: (entry: SystemEntry) => void
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

/** The slot `embedded`, which follows a file. The file may be replaced at any time and needs no signature. */
export interface Embedded {
  /**
   * Checks whether the file has changed; if so, examines it. Resolves when the slot is up to date with the file.
   * @throws AppError NotReady if the daemon stops meanwhile
   */
  refresh(): Promise<void>
  /** Why the file cannot be used; empty if it can. */
  problems(): readonly Problem[]
}

export function createEmbedded(options: EmbeddedOptions): Embedded {
  const { file, store, examiner, limits, reserveBytes, version, record, clock, log } = options
  let refused:
    { readonly source: string; readonly code: string; readonly problems: readonly Problem[] } | undefined
  let refreshing: Promise<void> | undefined

  const refuse = (source: string, error: unknown): void => {
    const { code = 'Internal', message, details = {} } = error as NodeJS.ErrnoException & { details?: object }
    const { problems } = details as { problems?: readonly Problem[] }
    const isKnown = source === refused?.source && code === refused.code
    refused = { source, code, problems: problems ?? [{ code, severity: 'error', place: file, message }] }
    if (isKnown) return
    log.warn(
      { file, code, reason: message },
      `the embedded definition cannot be used; see all of it with: edgehostctl definition validate ${file}`,
    )
  }

  async function refreshNow(): Promise<void> {
    const source = await sourceOf(file, version).catch((error: unknown) => error as Error)
    if (source instanceof Error) {
      refuse(source.message, source)
      return
    }
    if (source === undefined) {
      refused = undefined
      const removed = await store.remove('embedded')
      if (removed)
        record(entryOf(removed, 'delete', 'Remove the embedded definition, whose file was removed'))
      return
    }
    if (source === store.find('embedded')?.source) return
    // A full disk says nothing about the file, and space may have been freed since.
    if (source === refused?.source && refused.code !== 'StorageFull') return
    try {
      const definition = await examine(source)
      refused = undefined
      const { name, version: ofDefinition } = definition
      record(entryOf(definition, 'create', `Accept the embedded definition ${name} ${ofDefinition}`))
    } catch (error) {
      // A stop says nothing about the file either; the next start examines it again.
      if (!(error instanceof AppError) || error.code === 'NotReady') throw error
      // The definition in the slot came from an earlier file, which no longer exists.
      await store.remove('embedded')
      refuse(source, error)
    }
  }

  async function examine(source: string): Promise<SlotDefinition> {
    const staging = await store.stage()
    try {
      const examination = examiner.begin({
        ...{ file, folder: staging.folder, limits, reserveBytes, isHashed: true },
      })
      examination.written(Number(source.split(' ')[0]))
      examination.end()
      const definition: SlotDefinition = {
        ...{ ...(await examination.result), uid: staging.uid, slot: 'embedded' },
        ...{ fileName: basename(file), addedAt: clock.now(), source },
      }
      await store.commit(staging, definition)
      return definition
    } catch (error) {
      await store.removeStaged(staging)
      throw error
    }
  }

  return {
    refresh: () => (refreshing ??= refreshNow().finally(() => (refreshing = undefined))),
    problems: () => refused?.problems ?? [],
  }
}

/** Identifies the state of the file: size first, then all that changes with the content. Undefined if there is no file. */
async function sourceOf(file: string, version: string): Promise<string | undefined> {
  const found = await stat(file, { bigint: true }).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  })
  if (!found) return undefined
  if (!found.isFile()) throw new Error(`${file} is not a regular file`)
  const { size, mtimeNs, ctimeNs, ino } = found
  return `${size} ${mtimeNs} ${ctimeNs} ${ino} ${version}`
}

const entryOf = (
  { uid, name, version }: SlotDefinition,
  action: 'create' | 'delete',
  message: string,
): SystemEntry => ({
  ...{ action, kind: 'definition', resourceName: `${name} ${version}`, resourceUid: uid, message },
})
