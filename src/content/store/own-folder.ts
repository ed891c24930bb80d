import { open, opendir, readdir } from 'node:fs/promises'
import { replaceFile } from '../../system/files.ts'
import { formatImageName } from '../format/image-name.ts'
import { missing, type ContentFolder, isAside, uidOfRecord } from './folder.ts'
import { type IndexDatabase, hasTag } from './index-database.ts'
import { createSlices } from '../../base/slices.ts'
import { basename, dirname, join } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { NamedFileUnusable } from '../../errors/start-error.ts'

interface Listed {
  readonly id: number
  readonly digest: string
  readonly mediaType: string
  readonly name: string
  readonly tag: string
  readonly sizeBytes: number
  readonly isTagged: number
}

/**
 * The head of each index.json of a store, also of earlier versions: the line feed tells it from files of other programs.
 */
const indexFileHead =
  '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[\n'

/**
 * Writes index.json of the store, for people and for tools that read an image layout, such as `skopeo copy oci:…`. The daemon does
 * not read it. A tag is at the bundle that has it.
 */
export async function writeIndexFile({ indexFile }: ContentFolder, { sql }: IndexDatabase): Promise<void> {
  const page = sql.prepare(`SELECT entry.id AS id, digest, media_type AS mediaType, name, tag,
    blob.size_bytes AS sizeBytes, ${hasTag} AS isTagged
    FROM entry JOIN bundle ON bundle.id = entry.bundle AND is_published = 1 JOIN blob ON hex = substr(digest, 8)
    WHERE entry.id > ? ORDER BY entry.id LIMIT 200`)
  async function* pieces(): AsyncGenerator<string> {
    yield indexFileHead
    const rest = createSlices()
    let isEmpty = true
    for (let last = 0; ;) {
      await rest()
      const rows = page.all(last) as unknown as Listed[]
      if (rows.length === 0) break
      yield rows
        .map((row) => `${isEmpty && row === rows[0] ? '' : ',\n'}${JSON.stringify(descriptorOf(row))}`)
        .join('')
      isEmpty = false
      last = rows.at(-1)?.id ?? last
    }
    yield isEmpty ? ']}\n' : '\n]}\n'
  }
  await replaceFile(indexFile, pieces(), 0o600)
}

function descriptorOf({ digest, mediaType, sizeBytes, name, tag, isTagged }: Listed) {
  const named = isTagged === 1 ? formatImageName({ name, tag }) : undefined
  return {
    mediaType,
    digest,
    size: sizeBytes,
    ...(named && {
      annotations: { 'io.containerd.image.name': named, 'org.opencontainers.image.ref.name': named },
    }),
  }
}

/**
 * Checks that a folder may become, or is, the folder of a store. A store removes every blob that no record names and writes index.json
 * anew, so a folder with an image layout of another program must not become one: it would be emptied.
 *
 * A folder is one of a store if it has a record, or all the folders that a store makes before it writes anything. Any other one has to
 * have nothing yet at the names that a store uses; what else lies in it does not count, as on a disk that is mounted there.
 * @throws NamedFileUnusable naming the obstacles, and what to do; the system's error if the folder cannot be read
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
  // Of a store that has no bundle, index.json is the store's, or a damaged one; only beside blobs is something at stake.
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

/** For `catch`: a path that is no folder is reported when the folder is made. */
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
