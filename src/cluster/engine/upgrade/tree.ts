import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { chmod, copyFile, lchown, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'

/** A file of a copied tree. */
export interface FileSum {
  /** Relative to the root of the tree. */
  readonly path: string
  readonly bytes: number
  /** SHA-256, hex; of a link, of where it leads. */
  readonly sha256: string
}

/**
 * Copies a file, a link or a folder with its modes and owners. Blocks are shared where the file system can do that. Sockets and pipes are left out.
 * Nothing is synced. @param isLeftOut of a path below `from`
 */
export async function copyTree(
  from: string,
  to: string,
  isLeftOut: (path: string) => boolean = () => false,
): Promise<void> {
  const found = await lstat(from)
  if (found.isSymbolicLink()) await symlink(await readlink(from), to)
  else if (found.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE)
  else if (found.isDirectory()) {
    await mkdir(to, { recursive: true, mode: 0o700 })
    for (const name of await readdir(from)) {
      const path = join(from, name)
      if (!isLeftOut(path)) await copyTree(path, join(to, name), isLeftOut)
    }
  } else return
  await lchown(to, found.uid, found.gid)
  if (!found.isSymbolicLink()) await chmod(to, found.mode & 0o7777)
}

/** The files and links below a folder, in the order of their paths, with their sums. */
export async function sumsOf(root: string, below = ''): Promise<readonly FileSum[]> {
  const sums: FileSum[] = []
  for (const name of (await readdir(join(root, below))).sort()) {
    const path = join(below, name)
    const found = await lstat(join(root, path))
    if (found.isDirectory()) sums.push(...(await sumsOf(root, path)))
    else if (found.isSymbolicLink())
      sums.push({
        path,
        bytes: 0,
        sha256: sha256()
          .update(await readlink(join(root, path)))
          .digest('hex'),
      })
    else if (found.isFile()) sums.push({ path, bytes: found.size, sha256: await sumOfFile(join(root, path)) })
  }
  return sums
}

/** What differs from the sums first: a sentence for operators; undefined where nothing does. */
export async function damageOf(root: string, sums: readonly FileSum[]): Promise<string | undefined> {
  const present = new Map((await sumsOf(root)).map((each) => [each.path, each]))
  for (const { path, bytes, sha256: sum } of sums) {
    const found = present.get(path)
    if (!found) return `${path} is missing`
    if (found.bytes !== bytes) return `${path} has ${found.bytes} bytes instead of ${bytes}`
    if (found.sha256 !== sum) return `${path} has another content`
    present.delete(path)
  }
  const [more] = present.keys()
  return more === undefined ? undefined : `${more} was added`
}

/** Bytes of all files below a folder; 0 where it is not there. */
export async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(
    entries.map(async (entry) =>
      entry.isFile() ? (await lstat(join(entry.parentPath, entry.name)).catch(() => ({ size: 0 }))).size : 0,
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

const sha256 = () => createHash('sha256')

async function sumOfFile(path: string): Promise<string> {
  const hash = sha256()
  for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576 }) as AsyncIterable<Buffer>)
    hash.update(chunk)
  return hash.digest('hex')
}
