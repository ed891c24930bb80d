import {
  createPublicKey,
  verify,
  type KeyObject,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { isRecord } from '../../base/json.ts'
import type { Clock } from '../../system/clock.ts'
import { createSignedClaims } from '../../credentials/signed-claims.ts'
import { isValidAt } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'
import type { CallerChanges } from '../requests/changes.ts'
import { judgeGeneration, type HostRecord, type HostStore } from './store.ts'

/** Claims that a host signs at its login. */
interface LoginProof {
  /** Uid of the host. */
  readonly sub: string
  readonly nonce: string
  /** The generation of its last login, as the host knows it. */
  readonly gen: number
}

const longestProof = 2_048
// Far from the numbers that are not exact, which the database gives back no more; the next generations still count up from it.
const largestGeneration = 2 ** 52
const header = { alg: 'EdDSA', typ: 'edge-login+jwt' } as const
const rawKeyBytes = 32
// RFC 8410, 4: the DER of an Ed25519 key is this and its 32 bytes.
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * The key of a host.
 * @param text base64url of its 32 bytes
 * @returns undefined for any other text
 */
export function parseHostKey(text: string): KeyObject | undefined {
  const raw = Buffer.from(text, 'base64url')
  if (raw.length !== rawKeyBytes || raw.toString('base64url') !== text) return undefined
  try {
    return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

/**
 * Reads a compact JWS (RFC 7515) with EdDSA (RFC 8037). Our own few lines: the one accepted algorithm and type are fixed, and the JWT library of
 * the tokens takes keys in PEM only.
 * @returns undefined for a text that this key has not signed, or that is no proof
 */
export function readLoginProof(text: string, key: KeyObject): LoginProof | undefined {
  if (text.length > longestProof) return undefined
  const parts = text.split('.')
  const [head = '', payload = '', signature = ''] = parts
  if (parts.length !== 3 || !isHeader(parseJson(head))) return undefined
  const signed = Buffer.from(signature, 'base64url')
  if (signed.toString('base64url') !== signature) return undefined
  if (!verify(null, Buffer.from(`${head}.${payload}`), key, signed)) return undefined
  const claims = parseJson(payload)
  return isProof(claims) ? { sub: claims.sub, nonce: claims.nonce, gen: claims.gen } : undefined
}

function parseJson(encoded: string): unknown {
  try {
    return JSON.parse(Buffer.from(encoded, 'base64url').toString()) as unknown
  } catch {
    return undefined
  }
}

// Exactly these two members: `crit`, `jwk` and others would ask for more than is done here.
const isHeader = (value: unknown): boolean =>
  isRecord(value) && Object.keys(value).length === 2 && value.alg === header.alg && value.typ === header.typ

function isProof(value: unknown): value is LoginProof {
  if (!isRecord(value)) return false
  const { sub, nonce, gen } = value
  const isText = typeof sub === 'string' && typeof nonce === 'string'
  return isText && Number.isInteger(gen) && (gen as number) >= 0 && (gen as number) <= largestGeneration
}

/**
 * Nonces that need no memory until they are used: the time, random bytes, and a code over both and the host they are for. A nonce is valid for a
 * minute, and once: a proof that is sent again would get a token for another one who has read it, or make the host look like two.
 */
interface Nonces {
  make(hostUid: string): string
  /** Whether a nonce is valid for a host; from then on it is not. To be called for proofs that the host has signed only, since each is remembered. */
  take(nonce: string, hostUid: string): boolean
}

const lifeMs = 60_000
const timeBytes = 6
const randomSize = 16
const codeSize = 32
const size = timeBytes + randomSize + codeSize

export function createNonces({ clock }: { readonly clock: Clock }): Nonces {
  // A key of this process: nonces used before a restart are forgotten, and must not be valid after it.
  const key = randomBytes(32)
  /** Time at which each nonce was taken, by the monotonic clock; the oldest first. */
  const taken = new Map<string, number>()

  function forgetOld(): void {
    for (const [nonce, at] of taken) {
      if (clock.monotonic() - at < lifeMs) return
      taken.delete(nonce)
    }
  }

  const codeOf = (content: Buffer, hostUid: string) =>
    createHmac('sha256', key).update(content).update(hostUid).digest()
  return {
    make(hostUid) {
      const time = Buffer.alloc(timeBytes)
      time.writeUIntBE(Math.max(0, clock.now()), 0, timeBytes)
      const content = Buffer.concat([time, randomBytes(randomSize)])
      return Buffer.concat([content, codeOf(content, hostUid)]).toString('base64url')
    },
    take(nonce, hostUid) {
      forgetOld()
      if (taken.has(nonce)) return false
      const bytes = Buffer.from(nonce, 'base64url')
      // Base64 has several spellings of some bytes; only ours is accepted.
      if (bytes.length !== size || bytes.toString('base64url') !== nonce) return false
      const content = bytes.subarray(0, timeBytes + randomSize)
      if (!timingSafeEqual(bytes.subarray(timeBytes + randomSize), codeOf(content, hostUid))) return false
      const age = clock.now() - content.readUIntBE(0, timeBytes)
      if (age < 0 || age >= lifeMs) return false
      taken.set(nonce, clock.monotonic())
      return true
    },
  }
}

/** Claims of the token of a host. */
interface HostClaims {
  /** Uid of the host. */
  readonly sub: string
  /** Generation of the login that gave it. */
  readonly gen: number
}

/** Tokens of hosts: valid for 15 minutes. */
interface HostTokens {
  make(uid: string, generation: number): string
  /** @returns undefined for a token that is altered or expired, or from a time that is yet to come */
  read(token: string): HostClaims | undefined
}

const lifeSeconds = 15 * 60

export async function createHostTokens({
  key,
  clock,
}: {
  readonly key: Buffer
  readonly clock: Clock
}): Promise<HostTokens> {
  const { sign, read } = await createSignedClaims({
    key,
    required: ['sub', 'gen'],
    // The times are compared here, since the tests set this clock.
    isExpiryChecked: false,
  })
  return {
    make(sub, gen) {
      const iat = Math.floor(clock.now() / 1_000)
      return sign({ sub, gen, iat, exp: iat + lifeSeconds })
    },
    read(token) {
      const { sub, gen, iat, exp } = read(token) ?? {}
      if (typeof sub !== 'string' || ![gen, iat, exp].every(Number.isInteger)) return undefined
      const isValid = isValidAt(clock.now(), { iat: iat as number, exp: exp as number })
      return isValid ? { sub, gen: gen as number } : undefined
    },
  }
}

interface HostLoginOptions {
  readonly hosts: HostStore
  readonly nonces: Nonces
  /** Makes a token for a host and the generation of its login. */
  readonly makeToken: (hostUid: string, generation: number) => string
  readonly transaction: <T>(work: () => T) => T
  readonly changes: Pick<CallerChanges, 'gone'>
  readonly clock: Clock
}

export interface HostLogin {
  /**
   * The first half: a nonce for the host to sign, and nothing else. Every uid gets one, so that uids cannot be probed.
   */
  challenge(uid: string): AppError
  /**
   * The second half. The new generation is on the disk when it returns.
   * @throws AppError LoginChallenge for a nonce that is too old or was used, LoginRefused, HostRemoved, HostExistsTwice
   */
  logIn(
    uid: string,
    proof: string,
  ): { readonly token: string; readonly generation: number; readonly host: HostRecord }
}

export function createHostLogin(options: HostLoginOptions): HostLogin {
  const { hosts, nonces, makeToken, transaction, changes, clock } = options

  const challenge = (uid: string) =>
    new AppError(platformErrors.LoginChallenge, 'sign this nonce with the key of the host', {
      details: { nonce: nonces.make(uid) },
    })

  const refused = () =>
    new AppError(
      platformErrors.LoginRefused,
      'the login of this host was refused: the platform knows no such host with this key',
    )

  const twice = (name: string) =>
    new AppError(
      platformErrors.HostExistsTwice,
      `${name} exists twice: its disk was copied, or put back from a backup; an administrator of the platform has to choose`,
    )

  return {
    challenge,
    logIn(uid, proof) {
      const host = hosts.find(uid)
      const keyText = host?.publicKey ?? hosts.removedKey(uid)
      const key = keyText === undefined ? undefined : parseHostKey(keyText)
      const claims = key && readLoginProof(proof, key)
      if (claims?.sub !== uid) throw refused()
      if (!nonces.take(claims.nonce, uid)) throw challenge(uid)
      const outcome = transaction(() => {
        const current = hosts.find(uid)
        if (!current) return 'removed'
        const verdict = judgeGeneration(current, claims.gen)
        const changed = verdict === 'twice' ? { isTwice: true } : { last: verdict.next, isUsed: false }
        const next: HostRecord = {
          ...current,
          ...changed,
          ...(verdict !== 'twice' && current.isNextAccepted ? { isTwice: false, isNextAccepted: false } : {}),
        }
        hosts.put({ ...next, modifiedAt: clock.now() })
        return verdict === 'twice' ? 'twice' : next
      })
      if (outcome === 'removed')
        throw new AppError(
          platformErrors.HostRemoved,
          'this host was removed from the platform; to connect it again, register it with a new token',
        )
      if (outcome === 'twice') {
        changes.gone((caller) => caller.uid === uid)
        throw twice(host?.name ?? uid)
      }
      return { token: makeToken(uid, outcome.last), generation: outcome.last, host: outcome }
    },
  }
}
