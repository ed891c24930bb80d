import { randomBytes } from 'node:crypto'
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PlaceFileOptions {
  readonly path: string
  /** The random name under which it is written; by default one that does not reveal the file. */
  readonly temporary?: string
  /** Permission bits; the umask applies, as to every new file. */
  readonly mode: number
  /** Called with the temporary name of the file before it is created, so that the caller can remove it when a signal ends the process. */
  readonly onBegin: (temporary: string) => void
  /** Fills the file and returns when the content is on the disk. May read the file again, and may close it. */
  readonly write: (file: FileHandle) => Promise<void>
}

/**
 * Writes a file for the person who runs the command, which may take a while: the file is written under a temporary name
 * in the same folder and renamed when it is complete and on the disk. Root may name a folder that others can write to, so
 * the temporary name is random, and the file is created with O_EXCL (which follows no link, open(2)) and written only
 * through this handle.
 * @throws errors of `write`, and the system's error, with advice where the folder is missing; the temporary file is then
 *   removed and a former file at the path is unchanged
 */
export async function placeFile({
  path,
  temporary: name = `.edgehost-${randomBytes(8).toString('hex')}.part`,
  mode,
  onBegin,
  write,
}: PlaceFileOptions): Promise<void> {
  const present = await stat(path).catch(() => undefined)
  if (present && !present.isFile()) throw notRegular(path)
  const temporary = join(dirname(path), name)
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

/** The system's message names the temporary file, which the person who runs the command does not know. */
function inWords(error: unknown, folder: string): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return error
  const message = `the folder ${folder} is missing; make it first: mkdir -p ${folder}`
  return Object.assign(new Error(message, { cause: error }), { code: 'ENOENT' })
}

// A rename would replace a device by a file.
const notRegular = (path: string) =>
  Object.assign(new Error(`${path} is not a regular file and is not replaced; name another file`), {
    code: 'EEXIST',
  })
