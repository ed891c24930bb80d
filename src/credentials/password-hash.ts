import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { type Waiter, createFairTurns } from '../base/fair-queue.ts'
import { AppError } from '../errors/app-error.ts'
import { passwordErrors } from './codes.ts'

/** The cost of a password hash. */
export interface HashCost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
}

/** A parsed hash. */
interface ParsedHash extends HashCost {
  readonly parallelism: number
  readonly salt: Buffer
  readonly tag: Buffer
}

export interface PasswordHashesOptions {
  /** The cost of new hashes; the default is 19 MiB in 2 passes, as OWASP recommends for Argon2id. */
  readonly cost?: HashCost
  /** Hashes that are computed at once; each takes a thread of libuv, which file access needs too. */
  readonly atOnce?: number
  /** Hashes that may wait. */
  readonly waiting?: number
}

/** Password hashes by Argon2id (RFC 9106), as text in the form of PHC. Clients take turns, and their number is bounded. */
export interface PasswordHashes {
  /** @throws AppError TooManyPasswords */
  hash(password: string, waiter: Waiter): Promise<string>
  /**
   * Whether a password belongs to a hash.
   * @param text a hash, or an empty text for an account that does not exist or has none: it costs the same, and the answer is no
   * @throws AppError TooManyPasswords
   */
  verify(password: string, text: string, waiter: Waiter): Promise<boolean>
}

const saltBytes = 16
const tagBytes = 32
const retryAfterSec = 2

export function createPasswordHashes({
  cost = { memory: 19_456, passes: 2 },
  atOnce = 2,
  waiting = 32,
}: PasswordHashesOptions = {}): PasswordHashes {
  const turns = createFairTurns({
    atOnce,
    waiting,
    refusal: () =>
      new AppError(
        passwordErrors.TooManyPasswords,
        'too many passwords are being checked; try again in a moment',
        { retryAfterSec },
      ),
  })

  return {
    hash: (password, waiter) =>
      turns.run(waiter, async () => {
        const salt = randomBytes(saltBytes)
        const tag = await compute(password, { ...cost, parallelism: 1, salt }, tagBytes)
        return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=1$${base64(salt)}$${base64(tag)}`
      }),
    verify: (password, text, waiter) =>
      turns.run(waiter, async () => {
        const parsed = text === '' ? undefined : parseHash(text)
        const known = parsed ?? {
          ...cost,
          parallelism: 1,
          salt: randomBytes(saltBytes),
          tag: randomBytes(tagBytes),
        }
        const tag = await compute(password, known, known.tag.length)
        return timingSafeEqual(tag, known.tag) && parsed !== undefined
      }),
  }
}

const argon2id = promisify(argon2)

const compute = (
  password: string,
  { memory, passes, parallelism, salt }: Omit<ParsedHash, 'tag'>,
  tagLength: number,
): Promise<Buffer> =>
  // Other keyboards write the same letters in other code points (RFC 8265, 4.2.2).
  argon2id('argon2id', {
    message: password.normalize('NFC'),
    nonce: salt,
    parallelism,
    tagLength,
    memory,
    passes,
  })

const base64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

/**
 * Parses `$argon2id$v=19$m=…,t=…,p=…$salt$tag`. Bounds keep a damaged database from taking all memory.
 * @throws Error for any other text
 */
export function parseHash(text: string): ParsedHash {
  const [, memory, passes, parallelism, salt = '', tag = ''] =
    /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/.exec(
      text,
    ) ?? []
  const parsed = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
  const isSane =
    tag !== '' &&
    parsed.memory >= 8 &&
    parsed.memory <= 262_144 &&
    parsed.passes >= 1 &&
    parsed.parallelism >= 1
  if (!isSane) throw new Error('the stored hash of a password is damaged')
  return parsed
}
