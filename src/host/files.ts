import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/** Read access to the files that say what this machine is. Paths are absolute, as on the machine itself. */
export interface HostFiles {
  /** The whole file as text; undefined when it does not exist or may not be read. */
  text(path: string): Promise<string | undefined>
  /** The names in a folder, sorted; empty when it does not exist. */
  names(path: string): Promise<readonly string[]>
  /** Where a symbolic link points, absolute; undefined when `path` is no link. */
  link(path: string): Promise<string | undefined>
}

// The machine does not have it, or does not show it to this process: both mean that it cannot answer.
const absent = new Set(['ENOENT', 'ENOTDIR', 'EINVAL', 'ENODEV', 'ENXIO', 'EACCES', 'EPERM', 'ESRCH'])

/**
 * The files of a machine.
 * @param root the machine's root folder; a fixture tree of /sys, /proc and /etc can stand in
 */
export function createHostFiles(root = '/'): HostFiles {
  return {
    text: async (path) =>
      isMemory(path)
        ? ifThere(join(root, path), (file) => readFileSync(file, 'utf8'))
        : ifPresent(() => readFile(join(root, path), 'utf8')),
    names: async (path) => {
      const names = isMemory(path)
        ? await ifThere(join(root, path), (folder) => readdirSync(folder))
        : await ifPresent(() => readdir(join(root, path)))
      return names?.sort() ?? []
    },
    link: async (path) => {
      const target = isMemory(path)
        ? await ifThere(join(root, path), (link) => readlinkSync(link))
        : await ifPresent(() => readlink(join(root, path)))
      return target === undefined ? undefined : resolve(dirname(path), target)
    },
  }
}

/**
 * /proc and /sys are answered from kernel memory, and so is /run, a tmpfs (file-hierarchy(7)): read in place they
 * cost a fifth of the CPU time that the thread pool costs (docs/host-facts.md). Everything else may be on a disk
 * that does not answer.
 */
function isMemory(path: string): boolean {
  return /^\/(sys|proc|run)\//.test(path)
}

/** Half of what is asked for is not there, and an exception costs ten times as much as a look before. */
async function ifThere<T>(path: string, read: (path: string) => T): Promise<T | undefined> {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
  return ifPresent(() => read(path))
}

async function ifPresent<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
