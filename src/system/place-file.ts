import { randomBytes } from 'node:crypto'
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PlaceFileOptions {
  readonly path: string
  /** Permission bits; the umask takes some away, as from every new file. */
  readonly mode: number
  /** Told under which name the file is going to grow, for what takes it away when the process has to end. */
  readonly onBegin: (temporary: string) => void
  /** Fills the file, may read it again, and comes back when the content is on the disk. May close it. */
  readonly write: (file: FileHandle) => Promise<void>
}

/**
 * Places a file that takes a while, for the person who waits for it: it grows beside its place and is moved there
 * whole and on the disk. Root may name a folder in which others can write, so the name in between is random, and the
 * file is made by this (O_EXCL, which also follows no link, open(2)) and written through this one handle.
 * @throws what `write` throws, and the system's error, in words where the folder is missing; nothing is left beside the place then, and what stood
 *   there still stands
 */
export async function placeFile({ path, mode, onBegin, write }: PlaceFileOptions): Promise<void> {
  const present = await stat(path).catch(() => undefined)
  if (present && !present.isFile()) throw notRegular(path)
  const temporary = join(dirname(path), `.edgehost-${randomBytes(8).toString('hex')}.part`)
  onBegin(temporary)
  const file = await open(temporary, 'wx+', mode).catch((error: unknown) => {
    throw inWords(error, dirname(path))
  })
  try {
    try {
      await write(file)
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** The system names the temporary file, which says nothing to the person who waits. */
function inWords(error: unknown, folder: string): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return error
  const message = `the folder ${folder} is missing; make it first: mkdir -p ${folder}`
  return Object.assign(new Error(message, { cause: error }), { code: 'ENOENT' })
}

// A rename would put a file in the place of a device.
const notRegular = (path: string) =>
  Object.assign(new Error(`${path} is not a regular file and is not replaced; name another file`), {
    code: 'EEXIST',
  })
