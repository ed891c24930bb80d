import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { chmod, mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { seeDisk } from '../../errors/advice.ts'
import { StartError } from '../../errors/start-error.ts'
import type { Clock } from '../../system/clock.ts'
import { replaceFile } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { generateKey, needsRenewal, parseKey, signCertificate, type HostNames } from './certificate.ts'
import { tlsOptions, type TlsMaterial } from './options.ts'

/** Paths of an administrator's own certificate chain and key, PEM. */
export interface CertificateFiles {
  readonly certificateFile: string
  readonly keyFile: string
}

export interface CertificatesOptions {
  /** Where the daemon keeps the pair it makes: `key.pem` (0600), `certificate.pem` (0644). Its parent must be there. */
  readonly directory: string
  /** An administrator's own pair, which then takes the place of the daemon's. */
  readonly own: CertificateFiles | undefined
  /** Milliseconds since 1970. */
  readonly buildDate: number
  readonly clock: Clock
  readonly log: Logger
  readonly names: () => HostNames
  /** Told of a new private key, once it is written. */
  readonly onNewKey?: () => void
  /** Told why an administrator's new pair cannot be used. */
  readonly onRefused?: (reason: string) => void
}

/** The certificate that the server shows, and its life. */
export interface Certificates {
  /** @throws before the first `ensure` */
  material(): TlsMaterial
  /** SHA-256 of the certificate's DER as `AA:BB:…`. */
  fingerprint(): string
  notAfter(): Date
  /**
   * Makes sure that there is a certificate that fits: at the start, then from time to time and when an address came.
   * Warns, at most once a day, from 30 days before the expiry.
   * @returns whether the certificate is another one now, for `server.setSecureContext(tlsOptions(material()))`
   * @throws CertificateUnusable when an administrator's pair is bad at the first call
   */
  ensure(): Promise<boolean>
  /** Reads the files again, on `systemctl reload`; a bad administrator's pair is logged and the old one stays. */
  reload(): Promise<boolean>
}

/** An administrator's certificate or key cannot be used; the message names the file and says why. */
export class CertificateUnusable extends StartError {
  override readonly name = 'CertificateUnusable'
}

interface Pair {
  readonly material: TlsMaterial
  readonly certificate: X509Certificate
}

/** The daemon's own key, and how it stands in its file. */
interface StoredKey {
  readonly key: KeyObject
  readonly pem: string
}

const dayMs = 86_400_000
const warnDays = 30

/** The daemon's own certificate, or an administrator's where one is configured. */
export function createCertificates(options: CertificatesOptions): Certificates {
  const { own, clock, log } = options
  let current: Pair | undefined
  let lastWarning = -Infinity

  function present(): Pair {
    if (!current) throw new Error('no certificate yet: ensure() has not ended')
    return current
  }

  function use(pair: Pair): boolean {
    const changed = current?.certificate.fingerprint256 !== pair.certificate.fingerprint256
    current = pair
    if (changed) lastWarning = -Infinity
    warnOfExpiry(pair.certificate)
    return changed
  }

  function warnOfExpiry(certificate: X509Certificate): void {
    const notAfter = certificate.validToDate
    const days = Math.floor((notAfter.getTime() - clock.now()) / dayMs)
    if (days >= warnDays || clock.monotonic() - lastWarning < dayMs) return
    lastWarning = clock.monotonic()
    const file = own?.certificateFile ?? join(options.directory, 'certificate.pem')
    const advice = own
      ? `put a new pair at ${own.certificateFile} and ${own.keyFile}, then: systemctl reload edgehostd`
      : 'have a new one made with: systemctl restart edgehostd'
    log.warn(
      { file, notAfter, days },
      `${days < 0 ? 'the certificate has expired' : 'the certificate expires soon'}; ${advice}`,
    )
  }

  return {
    material: () => present().material,
    fingerprint: () => present().certificate.fingerprint256,
    notAfter: () => present().certificate.validToDate,
    async ensure() {
      if (!own) return use(await ensureSelfSigned(options, current?.material))
      return use(current ?? (await readOwn(own)))
    },
    async reload() {
      if (!own) return use(await ensureSelfSigned(options, current?.material))
      try {
        return use(await readOwn(own))
      } catch (error) {
        if (!(error instanceof CertificateUnusable) || !current) throw error
        log.error(
          { reason: error.message },
          'the new certificate cannot be used; the old one stays; mend it as reason says, then: systemctl reload edgehostd',
        )
        options.onRefused?.(error.message)
        return false
      }
    },
  }
}

async function readOwn({ certificateFile, keyFile }: CertificateFiles): Promise<Pair> {
  const [cert, key] = await Promise.all(
    [certificateFile, keyFile].map((file) =>
      readFile(file, 'utf8').catch((error: unknown) => {
        throw unusable(file, error)
      }),
    ),
  )
  return checkPair({ cert: cert ?? '', key: key ?? '' }, { certificateFile, keyFile })
}

/** @throws CertificateUnusable when the two do not parse, do not belong together, or TLS refuses them */
function checkPair(material: TlsMaterial, files: CertificateFiles): Pair {
  const key = attempt(files.keyFile, () => createPrivateKey(material.key))
  const pair = matchPair(material, key, files)
  // What is left: a broken chain behind the certificate, keys too short for today.
  attempt(files.certificateFile, () => createSecureContext(tlsOptions(material)))
  return pair
}

/** @throws CertificateUnusable when the certificate does not parse or is of another key */
function matchPair(
  material: TlsMaterial,
  key: KeyObject,
  { certificateFile, keyFile }: CertificateFiles,
): Pair {
  const certificate = attempt(certificateFile, () => new X509Certificate(material.cert))
  if (!certificate.checkPrivateKey(key)) {
    throw new CertificateUnusable(
      `${certificateFile}: its first certificate does not belong to the key in ${keyFile}: these two must be alike: ` +
        `openssl x509 -noout -pubkey -in ${certificateFile}; openssl pkey -pubout -in ${keyFile}`,
    )
  }
  return { material, certificate }
}

function attempt<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw unusable(file, error)
  }
}

function unusable(file: string, error: unknown): CertificateUnusable {
  const isRead = (error as NodeJS.ErrnoException).syscall === undefined
  const advice = isRead
    ? `it must be PEM: look at it with openssl storeutl -noout -text ${file}`
    : `see namei -l ${file}, or take api.tls out of the configuration`
  return new CertificateUnusable(`${file}: ${reasonOf(error)}: ${advice}`, { cause: error })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * Reads the daemon's own pair and makes what is missing, damaged or due. The key stays over every renewal, so that a
 * pin on the public key lasts.
 * @param served what is in use now; files that went away while the daemon runs are written again from it
 */
async function ensureSelfSigned(
  options: CertificatesOptions,
  served: TlsMaterial | undefined,
): Promise<Pair> {
  const { directory, clock, log, names, buildDate } = options
  const files = { certificateFile: join(directory, 'certificate.pem'), keyFile: join(directory, 'key.pem') }
  await store(log, directory, () => makeFolder(directory))

  let stored = await readKey(files.keyFile, log)
  if (!stored) {
    const key = served ? parseKey(served.key) : generateKey()
    stored = { key, pem: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
    const { pem } = stored
    await store(log, files.keyFile, () => replaceFile(files.keyFile, pem, 0o600))
    if (!served) options.onNewKey?.()
    log.info({ file: files.keyFile }, served ? 'the private key was written again' : 'a private key was made')
  }
  const { key, pem } = stored

  /** The pair with this certificate, or why it cannot stay. */
  function judge(cert: string | undefined): Pair | string {
    if (cert === undefined) return 'there was none'
    try {
      const pair = matchPair({ key: pem, cert }, key, files)
      // One certificate is all that signCertificate writes; behind it somebody may have put what TLS refuses.
      if (pair.certificate.toString() !== cert) checkPair(pair.material, files)
      if (!needsRenewal(pair.certificate, clock.now(), names())) return pair
      return 'it nears its end, or the host has a new name or address'
    } catch (error) {
      if (error instanceof CertificateUnusable) return error.message
      throw error
    }
  }

  const found = judge(await readIfThere(files.certificateFile))
  if (typeof found !== 'string') return found
  const kept = judge(served?.cert)
  const cert =
    typeof kept === 'string'
      ? await signCertificate({ key, names: names(), now: clock.now(), buildDate })
      : kept.material.cert
  await store(log, files.certificateFile, () => replaceFile(files.certificateFile, cert, 0o644))
  const pair = checkPair({ key: pem, cert }, files)
  const { fingerprint256: fingerprint, validToDate: notAfter } = pair.certificate
  log.info(
    { file: files.certificateFile, reason: found, fingerprint, notAfter },
    typeof kept === 'string' ? 'a certificate was made' : 'the certificate was written again',
  )
  return pair
}

// Not recursive: Node loops for ever where a parent cannot hold folders, and the state folder is there.
async function makeFolder(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
}

async function readKey(file: string, log: Logger): Promise<StoredKey | undefined> {
  const pem = await readIfThere(file)
  if (pem === undefined) return undefined
  const { mode } = await stat(file)
  if ((mode & 0o077) !== 0) {
    await store(log, file, () => chmod(file, 0o600))
    log.warn(
      { file, mode: (mode & 0o777).toString(8) },
      'others could read the private key; its mode is 0600 now',
    )
  }
  try {
    return { key: parseKey(pem), pem }
  } catch (error) {
    log.warn({ file, reason: reasonOf(error) }, 'the private key cannot be used and is replaced')
    return undefined
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A full or read-only disk must not keep the host from answering: the pair then lives in memory alone. */
async function store(log: Logger, file: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    log.error(
      { err: error, file },
      `the file could not be written; what it should hold is used from memory; ${seeDisk}`,
    )
  }
}
