import { systemReason } from '../errors/system-reason.ts'
import { isForRoot } from '../errors/unreadable.ts'
import type { Finding, ReferenceCheck } from '../room.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { certificatesIn } from './certificates.ts'

/**
 * Reads the file of authorities that a key of the configuration names.
 * @returns its text, each certificate of which can be read
 * @throws Error naming the key, the file and the reason
 */
export async function readAuthorities(key: string, file: string): Promise<string> {
  const text = await readRegularFile(file, textFileBytes).then(
    ({ bytes }) => bytes.toString(),
    (error: unknown) => {
      const reason = systemReason(error as NodeJS.ErrnoException)
      throw new Error(`${key}, ${file}, cannot be read: ${reason}`, { cause: error })
    },
  )
  try {
    certificatesIn(text)
  } catch (error) {
    throw new Error(`${key}, ${file}, cannot be used: ${(error as Error).message}`, { cause: error })
  }
  return text
}

/** Checks that file, as a part of the check of the configuration. */
export async function checkAuthorities(
  key: string,
  file: string,
  onUnseen: ReferenceCheck['onUnseen'],
): Promise<Finding[]> {
  try {
    await readAuthorities(key, file)
    return []
  } catch (error) {
    const { message, cause } = error as Error
    if (!isForRoot({ cause })) return [{ path: key, message, isOfFile: true }]
    onUnseen(file)
    return []
  }
}
