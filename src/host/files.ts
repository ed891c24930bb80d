// The daemon reads all files of the host through `system/regular-file.ts`: only regular files, opened without blocking, up to a size that the
// caller sets. Anything else is `FileRefused`: a condition of a fact, a problem of the configuration, or a line at the start with advice. A disk
// that hangs can still block a thread for ever, so a process ends by `program/end-sessions.ts`, which waits for no thread.

import { readdirSync, readlinkSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { FileRefused, readRegularFile, readRegularFileSync, textFileBytes } from '../system/regular-file.ts'

/** Read access to the files that describe this machine. Paths are absolute, as on the machine itself. */
export interface HostFiles {
  /**
   * The whole file as text; undefined when it does not exist or may not be read.
   * @param maximumBytes 1 MiB by default
   * @param encoding `latin1` keeps each byte as one character
   * @throws FileRefused where it is not a regular file, or larger than that
   */
  text(path: string, maximumBytes?: number, encoding?: 'utf8' | 'latin1'): Promise<string | undefined>
  /** The names in a folder, sorted; empty when it does not exist. */
  names(path: string): Promise<readonly string[]>
  /** Target of a symbolic link, absolute; undefined when `path` is no link. */
  link(path: string): Promise<string | undefined>
}

/** Most bytes of a table of the kernel, which has a line for each route, address or mount of hundreds of pods. */
export const kernelTableBytes = 16_777_216

// The machine does not have the file, or does not show it to this process: both count as a missing file.
const absent = new Set(['ENOENT', 'ENOTDIR', 'EINVAL', 'ENODEV', 'ENXIO', 'EACCES', 'EPERM', 'ESRCH'])

/**
 * The files of a machine.
 * @param root the machine's root folder; a fixture tree of /sys, /proc and /etc can stand in
 */
export function createHostFiles(root = '/'): HostFiles {
  return {
    text: async (path, maximumBytes = textFileBytes, encoding = 'utf8') => {
      const read = isMemory(path) ? readRegularFileSync : readRegularFile
      const file = await ifPresent(() => read(join(root, path), maximumBytes))
      return file?.bytes.toString(encoding)
    },
    names: async (path) => {
      const folder = join(root, path)
      const names = await ifPresent(() => (isMemory(path) ? readdirSync(folder) : readdir(folder)))
      return names?.sort() ?? []
    },
    link: async (path) => {
      const read = isMemory(path) ? readlinkSync : readlink
      const target = await ifPresent(() => read(join(root, path)))
      return target === undefined ? undefined : resolve(dirname(path), target)
    },
  }
}

/**
 * Files of other programs, where one that is refused must not hide the others: anything else at the path of a file, as a folder or a
 * named pipe, or a link that leads to itself, counts as a missing file.
 * @returns in `problems`, which grows while files are read, the refused ones and why, one clause each
 */
export function passRefused(files: HostFiles): { files: HostFiles; problems: readonly string[] } {
  const problems: string[] = []
  const text: HostFiles['text'] = async (path, maximumBytes, encoding) => {
    try {
      return await files.text(path, maximumBytes, encoding)
    } catch (error) {
      const isLoop = (error as NodeJS.ErrnoException).code === 'ELOOP'
      if (!isLoop && !(error instanceof FileRefused)) throw error
      problems.push(`${path} ${isLoop ? 'is a link that leads to itself' : (error as FileRefused).reason}`)
      return undefined
    }
  }
  return { files: { ...files, text }, problems }
}

/**
 * /proc and /sys are kernel memory, and so is /run, a tmpfs (file-hierarchy(7)): reading them synchronously costs a fifth
 * of the CPU time that the thread pool costs (docs/host-facts.md). All other files may be on a disk that does not answer.
 */
function isMemory(path: string): boolean {
  return /^\/(sys|proc|run)\//.test(path)
}

async function ifPresent<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** First line of every file that edgehostd places for its cluster beside an administrator's. */
export const ownMark = '# Written by edgehostd for its cluster; removed when the cluster is deleted.'

/** Whether a file was placed by edgehostd for its cluster. */
export const isOwnText = (text: string): boolean => text.startsWith(`${ownMark}\n`)
