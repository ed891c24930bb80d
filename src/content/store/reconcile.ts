import { readdir, rename, stat } from 'node:fs/promises'
import type { Logger } from '../../system/log.ts'
import { RecordDamaged } from '../format/record.ts'
import type { ContentIndex } from './content-index.ts'
import { asideFile, isAside, missing, recordFile, uidOfRecord, type ContentFolder } from './folder.ts'

/**
 * Brings the index up to date with the records: after a start, a lost or older database, another disk.
 * @returns whether all records could be read; otherwise no blob may be removed, since it may be one of theirs
 */
export async function reconcile({
  folder,
  index,
  log,
}: {
  readonly folder: ContentFolder
  readonly index: ContentIndex
  readonly log: Logger
}): Promise<boolean> {
  const names = await readdir(folder.bundles)
  const uids = new Set(names.map(uidOfRecord).filter((uid) => uid !== undefined))
  const marks = new Map<string, string>()
  for (const uid of uids) marks.set(uid, await markOf(recordFile(folder, uid)))
  const known = new Set<string>()
  for (const { id, uid, isPublished, mark } of index.rows()) {
    if (isPublished === 1 && marks.get(uid) === mark) known.add(uid)
    else await index.remove(id)
  }
  let areReadable = true
  for (const [uid, mark] of marks) {
    if (known.has(uid)) continue
    const isRead = await addRecord(uid, mark)
    areReadable &&= isRead
  }
  for (const name of names.filter(isAside)) {
    areReadable = false
    warnAside(`${folder.bundles}/${name}`)
  }
  return areReadable

  async function addRecord(uid: string, mark: string): Promise<boolean> {
    const file = recordFile(folder, uid)
    try {
      index.show(await index.add(uid, file), mark)
      return true
    } catch (error) {
      const id = index.idOf(uid)
      if (id !== undefined) await index.remove(id)
      if (error instanceof RecordDamaged) {
        await rename(file, asideFile(folder, uid))
        log.error({ file, reason: error.message }, 'the record of a bundle is damaged and kept aside')
        warnAside(asideFile(folder, uid))
        return false
      }
      // The system's error of the file; one of SQLite ends the opening.
      if ((error as { errcode?: number }).errcode !== undefined) throw error
      log.error(
        { err: error, file },
        'the record of a bundle cannot be read; its bundle is missing until then',
      )
      return false
    }
  }

  function warnAside(file: string): void {
    log.error(
      { file },
      'no content is removed while this damaged record is kept: upload its bundle again, or give the bundle up with rm, then restart edgehostd',
    )
  }
}

/** Tells one record from another of the same bundle, as after a restored copy. */
export async function markOf(file: string): Promise<string> {
  const found = await stat(file).catch(missing)
  return found ? `${found.size}-${Math.trunc(found.mtimeMs)}` : ''
}
