import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
  type X509Certificate,
} from 'node:crypto'
import { domainToASCII } from 'node:url'
import { canonicalAddress, isAddress, isLinkLocal, isLoopback } from '../base/address.ts'

/** What clients may call this host. */
export interface HostNames {
  readonly hostName: string
  /** Temporary addresses (RFC 8981) had better not be among them: each new one renews the certificate. */
  readonly addresses: readonly string[]
}

/** The names of a certificate, clean enough to stand in one. */
export interface SubjectNames {
  readonly dns: readonly string[]
  readonly ip: readonly string[]
}

const dayMs = 86_400_000
const lifeDays = 825
const renewalDays = lifeDays / 3
// A board without a clock of its own is behind at each start, and must not make a certificate at each. It is not behind
// the build date by what counts here, and no build is run for longer than this.
const clockLagDays = 3_650
// LDH labels and the underscore that some factories use; 63 and 253 are the limits of RFC 1035, 2.3.4.
const dnsName =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/
// RFC 5280, appendix A: ub-common-name.
const commonNameLimit = 64

/** Host name, all addresses and the three names of loopback; what cannot stand in a certificate is left out. */
export function subjectNames({ hostName, addresses }: HostNames): SubjectNames {
  const name = domainToASCII(hostName.replace(/\.$/, '')).toLowerCase()
  const dns = dnsName.test(name) && !isAddress(name) ? [name] : []
  const ip = addresses.map(canonicalAddress).filter(isAddress)
  return {
    dns: [...new Set([...dns, 'localhost'])],
    ip: [...new Set([...ip, '127.0.0.1', '::1'])],
  }
}

/** What a certificate is held against; times in milliseconds since 1970. */
export type RenewalQuestion = Omit<CertificateRequest, 'key'>

/**
 * True when less than a third of the 825 days is left, when the end is so far away that only a clock in the
 * future can have made it, or when a name or address of the host is not in it.
 * An address that went away is no reason (a cable that is pulled and put back must not cost two certificates),
 * nor is a link-local one, nor a clock that stands before `notBefore`.
 */
export function needsRenewal(
  certificate: X509Certificate,
  { names, now, buildDate }: RenewalQuestion,
): boolean {
  // Counted from the end: notBefore is the build date, so a late first start has a longer life on paper.
  const end = certificate.validToDate.getTime()
  if (end - now <= renewalDays * dayMs) return true
  if (end - Math.max(now, buildDate) > (lifeDays + clockLagDays) * dayMs) return true
  const { dns, ip } = subjectNames(names)
  return (
    dns.some((name) => certificate.checkHost(name, { subject: 'never', wildcards: false }) === undefined) ||
    ip.some((address) => !isLinkLocal(address) && certificate.checkIP(address) === undefined)
  )
}

/**
 * Whether an address of the host is all that a certificate lacks, which can wait: anyone on the link can give the host
 * another address at any time (RFC 4862). A certificate without an address that lasts is one of a first start before the
 * network was there, and cannot wait.
 */
export function onlyLacksAddress(certificate: X509Certificate, question: RenewalQuestion): boolean {
  const withoutAddresses = { ...question, names: { ...question.names, addresses: [] } }
  return !needsRenewal(certificate, withoutAddresses) && addressesOf(certificate).some(lasts)
}

const lasts = (address: string) => !isLoopback(address) && !isLinkLocal(address)

function addressesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((name) => /^IP Address:(.*)$/.exec(name)?.[1] ?? [])
}

/** When a certificate of `signCertificate` was made, no earlier than the build date; milliseconds since 1970. */
export const madeAt = ({ validToDate }: X509Certificate): number => validToDate.getTime() - lifeDays * dayMs

/** A new EC P-256 private key. */
export function generateKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
}

/**
 * Reads a private key that `signCertificate` can use.
 * @throws when the text is no PEM private key, or not on P-256
 */
export function parseKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('not an EC P-256 key')
  return key
}

/** What a new certificate says; times in milliseconds since 1970. */
export interface CertificateRequest {
  readonly key: KeyObject
  readonly names: HostNames
  readonly now: number
  readonly buildDate: number
}

/**
 * A self-signed server certificate, PEM (RFC 5280): 825 days, and no earlier than the build date, so that a board
 * whose clock starts in 1970 makes one that is valid for its clients.
 */
export async function signCertificate({ key, names, now, buildDate }: CertificateRequest): Promise<string> {
  const x509 = await importX509()
  const { dns, ip } = subjectNames(names)
  const common =
    dns[0] !== 'localhost' && dns[0] !== undefined && dns[0].length <= commonNameLimit ? dns[0] : 'edgehostd'
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  const publicKey = createPublicKey(key).toCryptoKey(algorithm, true, ['verify'])
  const serialNumber = randomBytes(16)
  // Positive and never shortened by DER.
  serialNumber.writeUInt8((serialNumber.readUInt8(0) & 0x7f) | 0x40)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [common] }],
    serialNumber: serialNumber.toString('hex'),
    notBefore: new Date(buildDate),
    notAfter: new Date(Math.max(now, buildDate) + lifeDays * dayMs),
    keys: { privateKey: key.toCryptoKey(algorithm, true, ['sign']), publicKey },
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...dns.map((value) => ({ type: 'dns' as const, value })),
        ...ip.map((value) => ({ type: 'ip' as const, value })),
      ]),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(publicKey),
    ],
  })
  return `${certificate.toString('pem')}\n`
}

/**
 * Loads the library only when a certificate is made, which is once in 550 days.
 * Its container (tsyringe) refuses to load without the metadata functions of `reflect-metadata`, and asks them only for
 * constructor parameters to inject; the library's classes have none, so functions that know nothing are enough.
 */
async function importX509() {
  for (const name of ['getMetadata', 'getOwnMetadata', 'defineMetadata']) {
    if (!(name in Reflect))
      Object.defineProperty(Reflect, name, { value: () => undefined, configurable: true })
  }
  return import('@peculiar/x509')
}
