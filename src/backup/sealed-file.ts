import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { promisify } from 'node:util'
import { BackupRefused } from './refused.ts'

/**
 * A file that only a passphrase opens:
 *
 * | bytes   |                                                                                                    |
 * | 8       | `EDGEBKUP`                                                                                         |
 * | 4       | length of the header, big endian                                                                   |
 * | …       | the header, JSON: version, parameters of scrypt and of the cipher, what it is a copy of            |
 * | 32      | HMAC-SHA-256 of all before it: a wrong passphrase shows before anything is decrypted               |
 * | …       | pieces of AES-256-GCM, each with its tag of 16 bytes; only the last one may be shorter             |
 *
 * The nonce of a piece is a random prefix, its number, and whether it is the last (STREAM, Hoang and others, 2015), and the header is
 * its additional data. So a piece that was changed, moved, left out or cut off is refused.
 */
const magic = Buffer.from('EDGEBKUP')
const formatVersion = 1
const checkBytes = 32
const tagBytes = 16
const pieceBytes = 262_144
const longestHeader = 65_536
// About 0.4 s and 128 MiB: RFC 7914 recommends no less for a file.
const cost = { N: 131_072, r: 8, p: 1 } as const
// A header that is not checked yet may ask for so much at most: 256 MiB.
const mostCost = { N: 262_144, r: 8, p: 4 } as const

/** Source of a backup. */
export interface About {
  readonly program: string
  readonly programVersion: string
  /** RFC 3339. */
  readonly madeAt: string
}

interface Header {
  readonly version: number
  readonly about: About
  readonly kdf: {
    readonly name: 'scrypt'
    readonly N: number
    readonly r: number
    readonly p: number
    readonly salt: string
  }
  readonly cipher: { readonly name: 'aes-256-gcm'; readonly pieceBytes: number; readonly prefix: string }
}

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt)

async function keysOf(passphrase: string, { kdf }: Header): Promise<{ key: Buffer; checkKey: Buffer }> {
  const { N, r, p } = kdf
  const options = { N, r, p, maxmem: 256 * N * r }
  const both = await derive(passphrase.normalize('NFC'), Buffer.from(kdf.salt, 'base64'), 64, options)
  return { key: both.subarray(0, 32), checkKey: both.subarray(32) }
}

function nonceOf(prefix: Buffer, number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  prefix.copy(nonce)
  nonce.writeUInt32BE(number, 7)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

/** The bytes of the file. @param content in parts of any size */
export async function* seal(
  passphrase: string,
  about: About,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const prefix = randomBytes(7)
  const header: Header = {
    version: formatVersion,
    about,
    kdf: { name: 'scrypt', ...cost, salt: randomBytes(16).toString('base64') },
    cipher: { name: 'aes-256-gcm', pieceBytes, prefix: prefix.toString('base64') },
  }
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.length)
  const head = Buffer.concat([magic, length, json])
  const { key, checkKey } = await keysOf(passphrase, header)
  yield head
  yield createHmac('sha256', checkKey).update(head).digest()

  let number = 0
  const encrypt = (piece: Buffer, isLast: boolean) => {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(prefix, number, isLast))
    number += 1
    cipher.setAAD(head)
    return Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()])
  }
  let waiting = Buffer.alloc(0)
  for await (const part of content) {
    waiting = Buffer.concat([waiting, part])
    // The last piece is known only at the end, so one is always kept back.
    for (; waiting.length > pieceBytes; waiting = waiting.subarray(pieceBytes))
      yield encrypt(waiting.subarray(0, pieceBytes), false)
  }
  yield encrypt(waiting, true)
}

/** A file that was opened with its passphrase. */
export interface Unsealed {
  readonly about: About
  /** Its content, from the beginning at each call; each part was checked. @throws BackupRefused */
  content(): AsyncGenerator<Buffer>
}

/**
 * Opens a file.
 * @throws BackupRefused where it is no such file, is of a newer version, is cut or changed, or the passphrase is wrong
 */
export async function unseal(file: FileHandle, passphrase: string): Promise<Unsealed> {
  const { head, header, check, startsAt } = await readHeader(file)
  const { key, checkKey } = await keysOf(passphrase, header)
  if (!timingSafeEqual(createHmac('sha256', checkKey).update(head).digest(), check))
    throw new BackupRefused('the passphrase is wrong, or the first bytes of the file were changed')
  const prefix = Buffer.from(header.cipher.prefix, 'base64')
  const step = header.cipher.pieceBytes + tagBytes

  async function* content(): AsyncGenerator<Buffer> {
    const { size } = await file.stat()
    for (let at = startsAt, number = 0; ; number += 1) {
      const isLast = size - at <= step
      const piece = await readAt(file, at, Math.min(step, size - at))
      if (piece.length < tagBytes) throw damaged()
      const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(prefix, number, isLast), {
        authTagLength: tagBytes,
      })
      decipher.setAAD(head)
      decipher.setAuthTag(piece.subarray(-tagBytes))
      const text = decipher.update(piece.subarray(0, -tagBytes))
      try {
        decipher.final()
      } catch {
        throw damaged()
      }
      yield text
      if (isLast) return
      at += step
    }
  }
  return { about: header.about, content }
}

const damaged = () =>
  new BackupRefused('the file is damaged: a part of it was changed or cut off; use another copy of it')

const foreign = () => new BackupRefused('the file is no backup of this program')

async function readHeader(file: FileHandle) {
  const start = await readAt(file, 0, magic.length + 4)
  if (start.length < magic.length + 4 || !start.subarray(0, magic.length).equals(magic)) throw foreign()
  const length = start.readUInt32BE(magic.length)
  if (length > longestHeader) throw damaged()
  const rest = await readAt(file, start.length, length + checkBytes)
  if (rest.length < length + checkBytes) throw damaged()
  const json = rest.subarray(0, length)
  return {
    head: Buffer.concat([start, json]),
    header: parseHeader(json),
    check: rest.subarray(length),
    startsAt: start.length + rest.length,
  }
}

/** The header is believed only after the check; until then it bounds what the check may cost. */
function parseHeader(json: Buffer): Header {
  let value: unknown
  try {
    value = JSON.parse(json.toString())
  } catch {
    throw damaged()
  }
  const { version, about, kdf, cipher } = value as Partial<Header>
  if (typeof version === 'number' && version > formatVersion)
    throw new BackupRefused(
      `the file has version ${version} of its format, and this program knows version ${formatVersion}: install the version that made it${
        typeof about?.programVersion === 'string' ? `, ${about.programVersion.slice(0, 32)},` : ''
      } or a newer one`,
    )
  const isCost = (key: keyof typeof cost) => {
    const number = kdf?.[key]
    return Number.isInteger(number) && (number ?? 0) >= 1 && (number ?? 0) <= mostCost[key]
  }
  const isWhole =
    version === formatVersion &&
    kdf?.name === 'scrypt' &&
    Number.isInteger(Math.log2(kdf.N)) &&
    (['N', 'r', 'p'] as const).every(isCost) &&
    typeof kdf.salt === 'string' &&
    cipher?.name === 'aes-256-gcm' &&
    Number.isInteger(cipher.pieceBytes) &&
    cipher.pieceBytes >= 1 &&
    cipher.pieceBytes <= 16_777_216 &&
    typeof cipher.prefix === 'string' &&
    Buffer.from(cipher.prefix, 'base64').length === 7 &&
    [about?.program, about?.programVersion, about?.madeAt].every((each) => typeof each === 'string')
  if (!isWhole) throw damaged()
  return value as Header
}

/** As many bytes as there are, at most `length`. */
async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(Math.max(0, length))
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, at + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}
