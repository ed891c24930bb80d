import { chmod } from 'node:fs/promises'
import { replaceFile } from '../system/files.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'

/** Name of the file in the state folder that all keys are derived from. */
export const secretFile = 'secret'

/** Name of the file that has the new secret while everything is sealed with it. */
export const nextSecretFile = 'secret.next'

/** Name of the file that says that an administrator has removed the secret. */
export const endedSecretFile = 'secret.ended'

// 32 random bytes have some 30 different ones. A file that a power cut has left with its length and no content has one: keys derived of that
// are known to everyone.
const fewestDifferent = 8

const isSecret = (present: Buffer, bytes: number): boolean =>
  present.length === bytes && new Set(present).size >= fewestDifferent

/** Whether the file has a secret that can be used. @param bytes its length */
export const isUsableSecret = (file: string, bytes: number): Promise<boolean> =>
  readRegularFile(file, textFileBytes).then(
    (present) => isSecret(present.bytes, bytes),
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
  if (present && isSecret(present.bytes, bytes)) {
    // A restored backup may have a different mode.
    if ((present.stats.mode & 0o077) !== 0) await chmod(file, 0o600)
    return present.bytes
  }
  // A power cut during a manual copy leaves a short file, or one of zeros; a new secret only ends sessions.
  const secret = make(present !== undefined)
  await replaceFile(file, secret, 0o600)
  return secret
}
