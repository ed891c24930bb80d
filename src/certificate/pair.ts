import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { shellWord } from '../base/printable.ts'
import { NamedFileUnusable } from '../errors/start-error.ts'
import { FileRefused, readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { tlsOptions, type TlsMaterial } from '../system/tls-options.ts'

/** Paths of an administrator's own certificate chain and key, PEM. */
export interface CertificateFiles {
  readonly certificateFile: string
  readonly keyFile: string
}

/** A certificate with its key, and its parsed form. */
export interface Pair {
  readonly material: TlsMaterial
  readonly certificate: X509Certificate
}

/** An administrator's certificate or key cannot be used; the message names the file and the reason. */
export class CertificateUnusable extends NamedFileUnusable {
  override readonly name = 'CertificateUnusable'
  readonly file: string

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options)
    this.file = file
  }
}

/**
 * Reads an administrator's own pair.
 * @throws CertificateUnusable when a file cannot be read, or TLS does not accept the two as a pair
 */
export async function readOwnPair(files: CertificateFiles): Promise<Pair> {
  const found = await inspectOwnPair(files)
  if ('problems' in found) throw found.problems[0]
  return found
}

/** Reads an administrator's own pair, or returns all problems, of the certificate first. */
export async function inspectOwnPair(
  files: CertificateFiles,
): Promise<Pair | { readonly problems: readonly [CertificateUnusable, ...CertificateUnusable[]] }> {
  const [cert, key] = [await read(files.certificateFile), await read(files.keyFile)]
  if (typeof cert !== 'string') return { problems: typeof key === 'string' ? [cert] : [cert, key] }
  if (typeof key !== 'string') return { problems: [key] }
  try {
    return checkPair({ cert, key }, files)
  } catch (error) {
    if (!(error instanceof CertificateUnusable)) throw error
    return { problems: [error] }
  }
}

async function read(file: string): Promise<string | CertificateUnusable> {
  try {
    return (await readRegularFile(file, textFileBytes)).bytes.toString()
  } catch (error) {
    return error instanceof FileRefused
      ? new CertificateUnusable(file, `it ${error.reason}: see ls -lL ${file}`, { cause: error })
      : unusable(file, error)
  }
}

/** @throws CertificateUnusable when the two do not parse, do not belong together, or TLS refuses them */
export function checkPair(material: TlsMaterial, files: CertificateFiles): Pair {
  const key = attempt(files.keyFile, () => createPrivateKey(material.key))
  const pair = matchPair(material, key, files)
  // Remaining errors: a broken chain after the certificate, keys that are too short today.
  attempt(files.certificateFile, () => createSecureContext(tlsOptions(material)))
  return pair
}

/** @throws CertificateUnusable when the certificate does not parse or belongs to another key */
export function matchPair(
  material: TlsMaterial,
  key: KeyObject,
  { certificateFile, keyFile }: CertificateFiles,
): Pair {
  const certificate = attempt(certificateFile, () => new X509Certificate(material.cert))
  if (!certificate.checkPrivateKey(key)) {
    throw new CertificateUnusable(
      certificateFile,
      `its first certificate does not belong to the key in ${keyFile}: the output of these two must be equal: ` +
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
  return new CertificateUnusable(
    file,
    `${reasonOf(error)}: ${adviseOn(file, error as NodeJS.ErrnoException)}`,
    {
      cause: error,
    },
  )
}

function adviseOn(file: string, { code, syscall }: NodeJS.ErrnoException): string {
  if (syscall !== undefined)
    return `see namei -l ${shellWord(file)}, or remove api.tls from the configuration`
  // OpenSSL reports this when it cannot ask for a passphrase.
  if (code === 'ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED')
    return `the key must have no passphrase: openssl pkey -in ${shellWord(file)} -out FILE removes it`
  if (code === 'ERR_SSL_EE_KEY_TOO_SMALL')
    return 'make a pair with an RSA key of at least 2048 bits, or EC P-256'
  return `it must be PEM: check it with openssl storeutl -noout -text ${shellWord(file)}`
}

/** The message of any thrown value. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
