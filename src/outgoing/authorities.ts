import { systemReason } from '../errors/system-reason.ts'
import { isForRoot } from '../errors/unreadable.ts'
import type { Finding, ReferenceCheck } from '../room.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'

/**
 * Reads the file of authorities that a key of the configuration names.
 * @throws Error naming the key, the file and the reason
 */
export async function readAuthorities(key: string, file: string): Promise<string> {
  try {
    return (await readRegularFile(file, textFileBytes)).bytes.toString()
  } catch (error) {
    throw new Error(unreadable(key, file, error), { cause: error })
  }
}

/** Checks that file, as a part of the check of the configuration. */
export async function checkAuthorities(
  key: string,
  file: string,
  onUnseen: ReferenceCheck['onUnseen'],
): Promise<Finding[]> {
  try {
    await readRegularFile(file, textFileBytes)
    return []
  } catch (error) {
    if (!isForRoot({ cause: error })) return [{ path: key, message: unreadable(key, file, error) }]
    onUnseen(file)
    return []
  }
}

const unreadable = (key: string, file: string, error: unknown) =>
  `${key}, ${file}, cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`
