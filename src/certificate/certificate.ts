import { program } from '../base/program.ts'
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

/** The names under which clients may reach this host. */
export interface HostNames {
  readonly hostName: string
  /** Should not include temporary addresses (RFC 8981): each new one renews the certificate. */
  readonly addresses: readonly string[]
}

/** The names of a certificate, limited to those that a certificate can have. */
export interface SubjectNames {
  readonly dns: readonly string[]
  readonly ip: readonly string[]
}

const dayMs = 86_400_000
const lifeDays = 825
const renewalDays = lifeDays / 3
// How much too far away the end of a certificate may be. The clock of a board without a battery is behind at each start, so
// the end of its certificate seems too far away; that must not renew the certificate at each start. Since times before the
// build date count as the build date, the clock is behind by the age of the build at most, and no build is in use this long.
const clockLagDays = 3_650
// LDH labels, and the underscore that some factories use; 63 and 253 are the limits of RFC 1035, 2.3.4.
const dnsName =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/
// RFC 5280, appendix A: ub-common-name.
const commonNameLimit = 64

/** Host name, all addresses and the three loopback names; names that a certificate cannot have are left out. */
export function subjectNames({ hostName, addresses }: HostNames): SubjectNames {
  const name = domainToASCII(hostName.replace(/\.$/, '')).toLowerCase()
  const dns = dnsName.test(name) && !isAddress(name) ? [name] : []
  const ip = addresses.map(canonicalAddress).filter(isAddress)
  return {
    dns: [...new Set([...dns, 'localhost'])],
    ip: [...new Set([...ip, '127.0.0.1', '::1'])],
  }
}

/** Requirements for a certificate; times in milliseconds since 1970. */
export type RenewalQuestion = Omit<CertificateRequest, 'key'>

/**
 * True when less than a third of the 825 days is left, when the end is so far away that it was computed with a clock in
 * the future, or when a name or address of the host is missing.
 * A removed address does not count (a cable that is pulled and put back must not cost two certificates), nor does a
 * link-local address, nor a clock before `notBefore`.
 */
export function needsRenewal(
  certificate: X509Certificate,
  { names, now, buildDate }: RenewalQuestion,
): boolean {
  // Computed from the end: notBefore is the build date, so a certificate of a late first start has a longer nominal
  // lifetime.
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
 * Whether a certificate lacks nothing but an address of the host. That can wait: anyone on the link can give the host
 * another address at any time (RFC 4862). A certificate without any permanent address comes from a first start before
 * the network was up, and cannot wait.
 */
export function onlyLacksAddress(certificate: X509Certificate, question: RenewalQuestion): boolean {
  const withoutAddresses = { ...question, names: { ...question.names, addresses: [] } }
  return !needsRenewal(certificate, withoutAddresses) && addressesOf(certificate).some(lasts)
}

const lasts = (address: string) => !isLoopback(address) && !isLinkLocal(address)

function addressesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((name) => /^IP Address:(.*)$/.exec(name)?.[1] ?? [])
}

/** Creation time of a certificate of `signCertificate`, but never before the build date; milliseconds since 1970. */
export const madeAt = ({ validToDate }: X509Certificate): number => validToDate.getTime() - lifeDays * dayMs

/** Creates an EC P-256 private key. */
export function generateKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
}

/**
 * Parses a private key that `signCertificate` can use.
 * @throws when the text is not a PEM private key on P-256
 */
export function parseKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('not an EC P-256 key')
  return key
}

/** The content of a new certificate; times in milliseconds since 1970. */
export interface CertificateRequest {
  readonly key: KeyObject
  readonly names: HostNames
  readonly now: number
  readonly buildDate: number
}

/**
 * Creates a self-signed server certificate, PEM (RFC 5280). It is valid for 825 days and never starts before the build
 * date, so that a board whose clock starts in 1970 makes one that its clients accept.
 */
export async function signCertificate({ key, names, now, buildDate }: CertificateRequest): Promise<string> {
  const x509 = await importX509()
  const { dns, ip } = subjectNames(names)
  const common =
    dns[0] !== 'localhost' && dns[0] !== undefined && dns[0].length <= commonNameLimit
      ? dns[0]
      : program.daemon
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  const publicKey = createPublicKey(key).toCryptoKey(algorithm, true, ['verify'])
  const serialNumber = randomBytes(16)
  // The first bit makes it positive, the second keeps DER from shortening it.
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
 * Loads the library only when a certificate is made, which is once in 550 days. Its container (tsyringe) refuses to
 * load without the metadata functions of `reflect-metadata`, and uses them only to find constructor parameters to
 * inject. The library's classes have none, so functions that return nothing are enough.
 */
async function importX509() {
  for (const name of ['getMetadata', 'getOwnMetadata', 'defineMetadata']) {
    if (!(name in Reflect))
      Object.defineProperty(Reflect, name, { value: () => undefined, configurable: true })
  }
  return import('@peculiar/x509')
}
