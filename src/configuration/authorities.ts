import type { X509Certificate } from 'node:crypto'
import { refusedField } from '../errors/refused-field.ts'
import { certificatesIn } from '../outgoing/authorities.ts'

const mostEntries = 100
const longestEntry = 262_144

/**
 * Reads certificates of authorities as users send them.
 * @param entries base64 of PEM, each with one certificate or several
 * @param field their name in the request
 * @param now milliseconds since 1970
 * @returns each certificate once, PEM with a line end
 * @throws AppError BadRequest with the index of the first that cannot be used
 */
export function readAuthorityList(entries: readonly string[], field: string, now: number): readonly string[] {
  if (entries.length > mostEntries)
    throw refusedField(field, `has ${entries.length} entries; at most ${mostEntries} are possible`)
  const found = entries.flatMap((entry, index) => {
    const refuse = (reason: string) => refusedField(`${field}[${index}]`, reason)
    if (entry.length > longestEntry) throw refuse(`is longer than ${longestEntry} characters`)
    if (entry.includes('-----BEGIN')) throw refuse('is PEM; it has to be base64 of PEM: base64 --wrap=0 FILE')
    const packed = entry.replace(/\s+/g, '')
    if (packed === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(packed) || packed.length % 4 !== 0)
      throw refuse('is not base64 of PEM: base64 --wrap=0 FILE')
    const text = Buffer.from(packed, 'base64').toString('latin1')
    if (/BEGIN [A-Z ]*PRIVATE KEY/.test(text))
      throw refuse('has a private key; send the certificate alone, and treat the key as known to others')
    let certificates: readonly X509Certificate[]
    try {
      certificates = certificatesIn(text)
    } catch (error) {
      throw refuse(`cannot be used: ${(error as Error).message}`)
    }
    for (const certificate of certificates) {
      const named = `the certificate of ${certificate.subject.replaceAll('\n', ', ').slice(0, 120) || 'no name'}`
      if (!certificate.ca)
        throw refuse(
          `is not of an authority: ${named} may sign no other; send the certificate of the authority that has signed it`,
        )
      if (certificate.validToDate.getTime() <= now)
        throw refuse(`has expired: ${named} was valid until ${certificate.validToDate.toISOString()}`)
    }
    return certificates
  })
  const byFingerprint = new Map(found.map((certificate) => [certificate.fingerprint256, certificate]))
  return [...byFingerprint.values()].map((certificate) => `${certificate.toString().trim()}\n`)
}
