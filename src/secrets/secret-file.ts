import { chmod } from 'node:fs/promises'
import { replaceFile } from '../system/files.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'

/** Name of the file in the state folder that all keys are derived from. */
export const secretFile = 'secret'

/** Name of the file that has the new secret while everything is sealed with it. */
export const nextSecretFile = 'secret.next'

/** Name of the file that says that an administrator has removed the secret. */
export const endedSecretFile = 'secret.ended'

/** Whether the file has a secret that can be used. @param bytes its length */
export const isUsableSecret = (file: string, bytes: number): Promise<boolean> =>
  readRegularFile(file, textFileBytes).then(
    (present) => present.bytes.length === bytes,
    () => false,
  )

/**
 * Reads a secret of the state folder, and creates it on the first start: mode 0600, never empty.
 * @param make returns the bytes of a new secret; its argument tells whether it replaces a damaged one
 */
export async function readOrMakeSecret(
  file: string,
  bytes: number,
  make: (isReplaced: boolean) => Buffer,
): Promise<Buffer> {
  const present = await readRegularFile(file, textFileBytes).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  })
  if (present?.bytes.length === bytes) {
    // A restored backup may have a different mode.
    if ((present.stats.mode & 0o077) !== 0) await chmod(file, 0o600)
    return present.bytes
  }
  // A power cut during a manual copy leaves a short file; a new secret only ends sessions.
  const secret = make(present !== undefined)
  await replaceFile(file, secret, 0o600)
  return secret
}
