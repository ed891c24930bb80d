// Files that others put into one folder of this host for administrators to download: logs and core dumps of applications. An account that may write
// to the folder may try to have another file of the host downloaded instead, by a link, so the folder and the files are opened without following
// links, and what was opened is judged by its descriptor: a regular file with one name.

import { isUtf8 } from 'node:buffer'
import { constants, type BigIntStats } from 'node:fs'
import { lstat, open, opendir, type FileHandle } from 'node:fs/promises'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { systemReason } from '../errors/system-reason.ts'
import { diagnosisErrors } from './codes.ts'

/** A file that may be downloaded. */
interface OfferedFile {
  readonly name: string
  readonly sizeBytes: bigint
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly modifiedAt: number
}

/** An opened file, with the facts of its present content. The caller closes it. */
interface OpenedFile {
  readonly file: FileHandle
  readonly sizeBytes: number
  readonly modifiedAt: number
  /** Differs where the content may differ; with its quotes. */
  readonly etag: string
}

export interface OfferedFiles {
  /**
   * Lists the files by name.
   * @returns also the number of entries that are not offered
   * @throws AppError NotFound without the folder, FileNotReadable
   */
  list(): Promise<{ readonly files: readonly OfferedFile[]; readonly omitted: number }>
  /** @throws AppError NotFound, also for an entry that is not offered; FileNotReadable */
  open(name: string): Promise<OpenedFile>
}

const mostFiles = 10_000
// O_NONBLOCK, since open(2) of a pipe waits for its writer. O_NOCTTY, so that a terminal does not become the controlling one.
const fileFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const folderFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY

/** Offers the files of a folder. @param directory absolute path; it need not be there */
export function createOfferedFiles(directory: string): OfferedFiles {
  /** Opens the folder; its entries are reached by `/proc/self/fd`, so that they belong to this folder, whatever its path becomes. */
  async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
    const handle = await open(directory, folderFlags).catch(refuseFolder)
    try {
      return await work(`/proc/self/fd/${handle.fd}`)
    } finally {
      await handle.close()
    }
  }

  function refuseFolder(error: unknown): never {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT')
      throw new AppError(
        generalErrors.NotFound,
        `the folder ${directory} is not there; make it (install -d ${directory}), or name another one in diagnosis.filesDirectory of the configuration`,
      )
    if (['ENOTDIR', 'ELOOP'].includes(code))
      throw new AppError(
        generalErrors.NotFound,
        `${directory} is not a folder, or a link to one; name the folder itself in diagnosis.filesDirectory of the configuration`,
      )
    throw notReadable(directory, error)
  }

  return {
    list: () =>
      inFolder(async (folder) => {
        const files: OfferedFile[] = []
        let omitted = 0
        const entries = await opendir(folder, { encoding: 'buffer' as BufferEncoding }).catch(
          (error: unknown) => {
            throw notReadable(directory, error)
          },
        )
        for await (const entry of entries) {
          const bytes = entry.name as unknown as Buffer
          const name = bytes.toString()
          const stats =
            entry.isFile() && isUtf8(bytes) && files.length < mostFiles
              ? await lstat(`${folder}/${name}`, { bigint: true }).catch(() => undefined)
              : undefined
          if (!stats || !isOffered(stats)) omitted += 1
          else
            files.push({
              name,
              sizeBytes: stats.size,
              createdAt: Number(stats.birthtimeMs || stats.ctimeMs),
              modifiedAt: Number(stats.mtimeMs),
            })
        }
        return { files: files.sort((one, two) => (one.name < two.name ? -1 : 1)), omitted }
      }),
    open: (name) =>
      inFolder(async (folder) => {
        if (!isName(name)) throw notOffered(directory, name)
        const file = await open(`${folder}/${name}`, fileFlags).catch((error: unknown) => {
          const { code = '' } = error as NodeJS.ErrnoException
          // ENXIO is a socket, or a device without a driver.
          if (['ENOENT', 'ELOOP', 'ENXIO', 'ENODEV', 'ENAMETOOLONG'].includes(code))
            throw notOffered(directory, name)
          throw notReadable(`${directory}/${name}`, error)
        })
        try {
          const stats = await file.stat({ bigint: true })
          if (!isOffered(stats)) throw notOffered(directory, name)
          const { dev, ino, size, mtimeNs, mtimeMs } = stats
          const etag = `"${[dev, ino, size, mtimeNs].map((part) => part.toString(36)).join('-')}"`
          return { file, sizeBytes: Number(size), modifiedAt: Number(mtimeMs), etag }
        } catch (error) {
          await file.close()
          throw error
        }
      }),
  }
}

const isOffered = (stats: BigIntStats): boolean => stats.isFile() && stats.nlink === 1n

/** Whether a text can be the name of an entry of a folder. */
const isName = (name: string): boolean => !/[/\0]/.test(name) && !['', '.', '..'].includes(name)

const notOffered = (directory: string, name: string) =>
  new AppError(
    generalErrors.NotFound,
    `${directory} has no file ${JSON.stringify(name)} that may be downloaded; only regular files of its first level with one name are`,
  )

function notReadable(path: string, error: unknown): unknown {
  const { code = '' } = error as NodeJS.ErrnoException
  if (!['EACCES', 'EPERM'].includes(code)) return error
  return new AppError(
    diagnosisErrors.FileNotReadable,
    `${path} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}; let others read it (chmod o+r), or give it to root`,
  )
}
