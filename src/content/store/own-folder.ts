import { open, opendir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { NamedFileUnusable } from '../../errors/start-error.ts'
import { isAside, missing, uidOfRecord, type ContentFolder } from './folder.ts'
import { indexFileHead } from './store-index-file.ts'

/**
 * Checks that a folder may become, or is, the folder of a store. A store removes every blob that no record names and writes index.json
 * anew, so a folder with an image layout of another program must not become one: it would be emptied.
 *
 * A folder is one of a store if it has a record, or all the folders that a store makes before it writes anything. Any other one has to
 * have nothing yet at the names that a store uses; what else lies in it does not count, as on a disk that is mounted there.
 * @throws NamedFileUnusable naming what is in the way, and what to do; the system's error if the folder cannot be read
 */
export async function requireOwnFolder(folder: ContentFolder): Promise<void> {
  const found = await findForeign(folder)
  if (found.length === 0) return
  const { root } = folder
  const isLayout = found.includes('blobs')
  const commands = [
    `cd ${shellWord(root)}`,
    ...['mkdir layout', `mv ${found.join(' ')} layout/`, 'systemctl start edgehostd'],
    ...(isLayout ? [`edgehostctl content upload ${shellWord(join(root, 'layout'))}`] : []),
  ]
  throw new NamedFileUnusable(
    `the folder of the content, ${root}, has ${found.join(', ')}, but no record of a bundle: edgehostd would overwrite and remove them, so it uses nothing of the folder. If they are content of edgehostd, put its folder bundles back; otherwise move them away${isLayout ? ', and bring them as a bundle' : ''}: ${commands.join(' && ')}`,
  )
}

/** Names in the folder that are in the way of a store; none if it is one, or may become one. */
async function findForeign(folder: ContentFolder): Promise<string[]> {
  const { root, blobs, bundles, uploads, damaged, indexFile } = folder
  const names = new Set(await readdir(root).catch(missing))
  if ((await namesIn(bundles)).some((name) => isAside(name) || uidOfRecord(name) !== undefined)) return []
  const made = [bundles, uploads, damaged]
  const hasAll = made.every((each) => names.has(basename(each)))
  const hasBlobs = await isUsed(dirname(blobs), basename(blobs))
  const isIndexForeign = await hasForeignIndex(indexFile)
  // Of a store that has no bundle, index.json is what the store wrote, or a damaged one; only beside blobs is something at stake.
  if (hasAll && !(hasBlobs && isIndexForeign)) return []
  const layout = hasBlobs || isIndexForeign ? ['oci-layout', basename(indexFile), 'blobs'] : []
  const others: string[] = []
  if (!hasAll) for (const each of made) if (await isUsed(each)) others.push(basename(each))
  return [...layout, ...others].filter((name) => names.has(name))
}

/** Whether a folder has something in it, apart from an empty folder of this name: a killed start may have made that. */
async function isUsed(path: string, empty?: string): Promise<boolean> {
  const entries = await opendir(path).catch(notAFolder)
  if (entries === undefined) return false
  // `for await` closes it, also at a return.
  for await (const { name } of entries) if (name !== empty || (await isUsed(join(path, name)))) return true
  return false
}

const namesIn = async (path: string): Promise<string[]> => (await readdir(path).catch(notAFolder)) ?? []

/** For `catch`: what is no folder is told by the making of the folder. */
function notAFolder(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOTDIR') missing(error)
}

/** Whether index.json is one that a store has not written. One that a disk has damaged, or an empty one, is no index. */
async function hasForeignIndex(indexFile: string): Promise<boolean> {
  const file = await open(indexFile, 'r').catch(missing)
  if (!file) return false
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4_096), 0, 4_096, 0)
    const head = buffer.toString('utf8', 0, bytesRead)
    return head.trimStart().startsWith('{') && !indexFileHead.startsWith(head.slice(0, indexFileHead.length))
  } finally {
    await file.close()
  }
}
