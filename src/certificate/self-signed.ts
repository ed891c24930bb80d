import type { KeyObject, X509Certificate } from 'node:crypto'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { seeDisk } from '../errors/advice.ts'
import type { Clock } from '../system/clock.ts'
import { replaceFile } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import {
  generateKey,
  needsRenewal,
  onlyLacksAddress,
  parseKey,
  signCertificate,
  type HostNames,
} from './certificate.ts'
import type { TlsMaterial } from '../system/tls-options.ts'
import { CertificateUnusable, checkPair, matchPair, reasonOf, type Pair } from './pair.ts'

export interface SelfSignedOptions {
  /**
   * The folder of the pair that the daemon makes: `key.pem` (0600), `certificate.pem` (0644). Its parent must exist.
   */
  readonly directory: string
  /** Milliseconds since 1970. */
  readonly buildDate: number
  readonly clock: Clock
  readonly log: Logger
  readonly names: () => HostNames
  /** Whether a certificate that can be used stays, whatever it lacks; the default is no. */
  readonly isHeld?: (() => boolean) | undefined
  /** Called after a new private key was written. */
  readonly onNewKey?: () => void
}

/** The daemon's own key, and its text in the file. */
interface StoredKey {
  readonly key: KeyObject
  readonly pem: string
}

/**
 * Reads the daemon's own pair and creates the files that are missing, damaged or due. Renewals keep the key, so that a
 * pin on the public key stays valid.
 * @param served the pair in use; files that are deleted while the daemon runs are written again from it
 * @param isEarly whether it is too early to replace a certificate that lacks only an address
 */
export async function ensureSelfSigned(
  options: SelfSignedOptions,
  served: TlsMaterial | undefined,
  isEarly: (certificate: X509Certificate) => boolean,
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
  const question = { names: names(), now: clock.now(), buildDate }

  /** The pair with this certificate, or why the certificate must be replaced. */
  function judge(cert: string | undefined): Pair | string {
    if (cert === undefined) return 'there was no certificate'
    try {
      const pair = matchPair({ key: pem, cert }, key, files)
      // signCertificate writes exactly one certificate; an administrator may have appended something that TLS refuses.
      if (pair.certificate.toString() !== cert) checkPair(pair.material, files)
      const { certificate } = pair
      if (!needsRenewal(certificate, question)) return pair
      if (options.isHeld?.() === true) {
        log.info('a new certificate is due, and is made after the change of the network that is being tried')
        return pair
      }
      if (onlyLacksAddress(certificate, question) && isEarly(certificate)) return pair
      return 'its expiry is near or much too far away, or the host has a new name or address'
    } catch (error) {
      if (error instanceof CertificateUnusable) return error.message
      throw error
    }
  }

  const found = judge(await readIfThere(files.certificateFile))
  if (typeof found !== 'string') return found
  const kept = judge(served?.cert)
  const cert = typeof kept === 'string' ? await signCertificate({ key, ...question }) : kept.material.cert
  await store(log, files.certificateFile, () => replaceFile(files.certificateFile, cert, 0o644))
  const pair = checkPair({ key: pem, cert }, files)
  const { fingerprint256: fingerprint, validToDate: notAfter } = pair.certificate
  log.info(
    { file: files.certificateFile, reason: found, fingerprint, notAfter },
    typeof kept === 'string' ? 'a certificate was made' : 'the certificate was written again',
  )
  return pair
}

/**
 * Looks for a file of the daemon's own pair that is there and cannot be used, and for a certificate whose key is gone.
 * @returns the problem; undefined where there is none, or no pair
 */
export async function findDamagedPair(directory: string): Promise<string | undefined> {
  const files = { certificateFile: join(directory, 'certificate.pem'), keyFile: join(directory, 'key.pem') }
  const key = await readIfThere(files.keyFile)
  const cert = await readIfThere(files.certificateFile)
  if (key === undefined) return cert === undefined ? undefined : `the private key ${files.keyFile} is missing`
  try {
    const parsed = parseKey(key)
    if (cert !== undefined) matchPair({ key, cert }, parsed, files)
    return undefined
  } catch (error) {
    return error instanceof CertificateUnusable
      ? error.message
      : `the private key ${files.keyFile} cannot be used: ${reasonOf(error)}`
  }
}

// Not recursive: Node loops forever where a parent cannot have subfolders, and the state folder exists.
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
    return (await readRegularFile(file, textFileBytes)).bytes.toString()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A full or read-only disk must not keep the host from answering: the pair is then kept in memory only. */
async function store(log: Logger, file: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    log.error(
      { err: error, file },
      `the file could not be written; its content is used from memory; ${seeDisk}`,
    )
  }
}
