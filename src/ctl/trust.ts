import { createHash, type X509Certificate } from 'node:crypto'
import { program } from '../base/program.ts'
import { Failure } from './exit-codes.ts'
import { readPrivate, writePrivate } from './folder.ts'
import type { HostTarget } from './target.ts'

/** A host whose key was accepted. The key stays the same when the certificate is renewed. */
export interface KnownHost {
  /** SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex. */
  readonly publicKey: string
  /** SHA-256 of the certificate at that time, as `AA:BB:...`. */
  readonly fingerprint: string
  readonly acceptedAt: string
}

export interface TrustOptions {
  readonly target: HostTarget
  /** From `--fingerprint`. */
  readonly expected: string | undefined
  /** Asks the user; `undefined` when there is no terminal. */
  readonly ask: (question: string) => string | undefined
  readonly say: (text: string) => void
}

/** SHA-256 of the public key, hex. */
export function publicKeyHash(certificate: X509Certificate): string {
  const der = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('hex')
}

/** The stored key of a host; `undefined` for an unknown host. */
export function readKnownHost({ keyFile }: HostTarget): KnownHost | undefined {
  return readPrivate(keyFile) as KnownHost | undefined
}

/** The failure for a host whose key has changed. */
export function changedKey(
  { name }: HostTarget,
  known: KnownHost,
  { fingerprint256 }: X509Certificate,
): Failure {
  return new Failure(
    'untrusted',
    `THE PUBLIC KEY OF ${name} HAS CHANGED since ${known.acceptedAt.slice(0, 10)}. Nothing was sent.
Either the ${program.noun} was reinstalled, or another machine intercepts the connection.
The SHA-256 fingerprint of the certificate is now
  ${fingerprint256}
${compare}
If they match, remove the old key and connect again: ${program.ctl} forget ${name}`,
  )
}

/**
 * Accepts the key of an unknown host and stores it, if the fingerprint is the given one or the user confirms it.
 * @throws Failure untrusted
 */
export function meetHost(certificate: X509Certificate, { target, expected, ask, say }: TrustOptions): void {
  const { fingerprint256: fingerprint } = certificate
  if (expected !== undefined) {
    if (bare(expected) !== bare(fingerprint))
      throw new Failure(
        'untrusted',
        `the fingerprint of the certificate of ${target.name} is not the one of --fingerprint; it is\n  ${fingerprint}\nNothing was sent. ${compare}`,
      )
  } else {
    const introduction = `The ${program.noun} ${target.name} is not known yet. The SHA-256 fingerprint of its certificate is\n  ${fingerprint}\n${compare}`
    const answer = ask(`${introduction}\nDo they match? [y/N] `)
    if (answer === undefined)
      throw new Failure(
        'untrusted',
        `${introduction}\nThere is no terminal to confirm it on. If they match, add: --fingerprint ${fingerprint}`,
      )
    if (!/^\s*y(es)?\s*$/i.test(answer))
      throw new Failure('untrusted', `the ${program.noun} was not accepted; nothing was sent`)
  }
  const known: KnownHost = {
    publicKey: publicKeyHash(certificate),
    fingerprint,
    acceptedAt: new Date().toISOString(),
  }
  writePrivate(target.keyFile, known)
  say(`The key of ${target.name} has been saved.`)
}

const compare =
  program.noun === 'host'
    ? `Compare it with the fingerprint on the console of the host: above the login prompt, or in sudo ${program.ctl} status.`
    : `Compare it with the fingerprint that this shows on the machine of the platform: sudo ${program.ctl} status.`

const bare = (fingerprint: string) =>
  fingerprint
    .replace(/^sha-?256[:=]/i, '')
    .replaceAll(/[:\s]/g, '')
    .toUpperCase()
