import { X509Certificate } from 'node:crypto'
import { systemReason, isForRoot } from '../errors/system-reason.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'

const block =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g

// Also one whose hyphens are not five.
const beginning = /BEGIN (?:X509 |TRUSTED )?CERTIFICATE\b(?! REQUEST)/g

/** The certificates of a text as PEM, without anything else that is in it, such as a key. */
export const pemBlocks = (text: string): readonly string[] => text.match(block) ?? []

/**
 * The certificates of a text in PEM.
 * @throws Error for one that cannot be read, with its place, and for a text without any
 */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pemBlocks(pem)
  const certificates = pem.match(beginning)?.length ?? 0
  if (certificates > blocks.length)
    throw new Error(`${certificates} certificates begin in it, and ${blocks.length} of them are whole`)
  if (blocks.length === 0) throw new Error('it has no certificate in PEM, -----BEGIN CERTIFICATE-----')
  return blocks.map((each, index) => {
    try {
      return new X509Certificate(each)
    } catch (error) {
      throw new Error(`certificate ${index + 1} of ${blocks.length} in it is damaged`, { cause: error })
    }
  })
}

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
