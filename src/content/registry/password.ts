import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { readRegularFile } from '../../system/regular-file.ts'
import type { Logger } from '../../system/log.ts'

/** The user name of the registry. */
export const registryUser = 'edgehostd'

const fileName = 'registry-password'
const fileBytes = 4_096
// Without control characters, which no header field may contain.
const passwordForm = /^[\x21-\x7e]{8,256}$/

/** The password of the registry: a file of the state folder, so that an administrator may replace it. */
export interface RegistryPassword {
  /**
   * Reads the file, and makes it with a new password where it is missing.
   * @throws an Error for operators, or the system's error; the password of before then stays
   */
  read(): Promise<void>
  /** Empty before the first `read`. */
  current(): string
  /** Whether the field `Authorization` has user name and password. */
  isRight(authorization: string | undefined): boolean
}

export function createRegistryPassword(stateDirectory: string, log: Logger): RegistryPassword {
  const file = join(stateDirectory, fileName)
  let password = ''
  let expected: Buffer | undefined

  async function readOrMake(): Promise<string> {
    const found = await readRegularFile(file, fileBytes).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return undefined
    })
    if (!found) {
      const made = randomBytes(32).toString('base64url')
      await replaceFile(file, `${made}\n`, 0o600)
      log.info({ file }, 'a password for the registry was made')
      return made
    }
    // An editor may have given it another mode.
    if ((found.stats.mode & 0o077) !== 0) await chmod(file, 0o600)
    const text = found.bytes.toString('latin1').replace(/\r?\n$/, '')
    if (!passwordForm.test(text))
      throw new Error(
        `${file} is not one line of 8 to 256 characters of ASCII without spaces; correct it, or remove it for a new one`,
      )
    return text
  }

  return {
    async read() {
      password = await readOrMake()
      expected = sum(`${registryUser}:${password}`)
    },
    current: () => password,
    isRight(authorization) {
      const [, encoded] = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization ?? '') ?? []
      if (encoded === undefined || expected === undefined) return false
      return timingSafeEqual(sum(Buffer.from(encoded, 'base64')), expected)
    },
  }
}

// Sums have one length, which timingSafeEqual needs.
const sum = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest()
