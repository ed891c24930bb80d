import { createPrivateKey, X509Certificate } from 'node:crypto'

/** From when to when a certificate is valid, milliseconds since 1970. */
export interface Validity {
  readonly issuedAt: number
  readonly expiresAt: number
}

const block = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** Certificates of a text of PEM, in their order; the first is that of the file. @throws Error what is wrong, without any of the text */
export function parseCertificates(text: string): readonly [Validity, ...Validity[]] {
  const [first, ...more] = text.match(block) ?? []
  if (first === undefined) throw new Error('it has no certificate')
  return [validityOf(first), ...more.map(validityOf)]
}

function validityOf(pem: string): Validity {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    throw new Error('it has a certificate that cannot be read')
  }
  const [issuedAt, expiresAt] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (Number.isNaN(issuedAt) || Number.isNaN(expiresAt)) throw new Error('it has a certificate without dates')
  return { issuedAt, expiresAt }
}

/** What a kubeconfig says of the certificate of its client. */
export interface ClientOfKubeconfig {
  /** PEM, where it is in the file. */
  readonly certificate?: string
  /** PEM, where it is in the file. */
  readonly key?: string
  /** File of the certificate, where it is not in the kubeconfig. */
  readonly file?: string
}

/**
 * Reads the client of a kubeconfig as kubeadm writes it: in block style, with one user. Without a parser of YAML, since it is read where
 * none is loaded.
 */
export function parseClient(text: string): ClientOfKubeconfig {
  const field = (name: string) =>
    new RegExp(`^\\s*${name}:\\s*["']?([^\\s"']+)["']?\\s*$`, 'm').exec(text)?.[1]
  const decoded = (name: string) => {
    const given = field(name)
    return given === undefined ? undefined : Buffer.from(given, 'base64').toString('latin1')
  }
  const [certificate, key] = [decoded('client-certificate-data'), decoded('client-key-data')]
  const file = field('client-certificate')
  return {
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    ...(file === undefined ? {} : { file }),
  }
}

/** Whether two texts of PEM are a certificate and its private key. */
export function isPair(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
