import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { StartError } from '../../errors/start-error.ts'
import { tlsOptions, type TlsMaterial } from './options.ts'

/** Paths of an administrator's own certificate chain and key, PEM. */
export interface CertificateFiles {
  readonly certificateFile: string
  readonly keyFile: string
}

/** A certificate with its key, and what it says. */
export interface Pair {
  readonly material: TlsMaterial
  readonly certificate: X509Certificate
}

/** An administrator's certificate or key cannot be used; the message names the file and says why. */
export class CertificateUnusable extends StartError {
  override readonly name = 'CertificateUnusable'
}

/**
 * Reads an administrator's own pair.
 * @throws CertificateUnusable when a file cannot be read, or the two are no pair that TLS takes
 */
export async function readOwnPair({ certificateFile, keyFile }: CertificateFiles): Promise<Pair> {
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
export function checkPair(material: TlsMaterial, files: CertificateFiles): Pair {
  const key = attempt(files.keyFile, () => createPrivateKey(material.key))
  const pair = matchPair(material, key, files)
  // What is left: a broken chain behind the certificate, keys too short for today.
  attempt(files.certificateFile, () => createSecureContext(tlsOptions(material)))
  return pair
}

/** @throws CertificateUnusable when the certificate does not parse or is of another key */
export function matchPair(
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

/** The message of whatever was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
