import { X509Certificate } from 'node:crypto'

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
  const begun = pem.match(beginning)?.length ?? 0
  if (begun > blocks.length)
    throw new Error(`${begun} certificates begin in it, and ${blocks.length} of them are whole`)
  if (blocks.length === 0) throw new Error('it has no certificate in PEM, -----BEGIN CERTIFICATE-----')
  return blocks.map((each, index) => {
    try {
      return new X509Certificate(each)
    } catch (error) {
      throw new Error(`certificate ${index + 1} of ${blocks.length} in it is damaged`, { cause: error })
    }
  })
}
