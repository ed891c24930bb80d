import { readFile } from 'node:fs/promises'

/**
 * Reads a file in which the engine notes what it has done on this host.
 * @returns undefined where it is not there, `damaged` where it cannot be read or is no JSON
 */
export async function readNote<T extends object>(path: string): Promise<T | 'damaged' | undefined> {
  try {
    const noted = JSON.parse(await readFile(path, 'utf8')) as T | null
    return typeof noted === 'object' && noted !== null ? noted : 'damaged'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : 'damaged'
  }
}
