import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, rm, stat, truncate, type FileHandle } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import { refuseFull } from '../../errors/system-reason.ts'
import { encryptFrom, readEncrypted, type EncryptedFile } from '../../secrets/encrypted-file.ts'
import { createSeal, type Seal } from '../../secrets/seal.ts'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { readRegularFile } from '../../system/regular-file.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { ForeignReply } from '../../outgoing/failures.ts'
import { OwnFailure, type Fetch, type Fetched, type FetchFailure } from '../fetch.ts'
import { sumIn } from './desired-store.ts'

/** Progress of a download. */
export interface DownloadProgress {
  readonly receivedBytes: number
  readonly totalBytes: number
}

/** Result of an attempt. */
export type DownloadResult =
  /** The file is whole, its sum is right, and it is on the disk. */
  | { readonly kind: 'whole'; readonly file: EncryptedFile }
  /** The received file had another sum and was thrown away. */
  | { readonly kind: 'sumWrong' }
  | (FetchFailure & {
      readonly kind: 'failed'
      /** Whether a retry soon is worth it: more is kept than at any time before. */
      readonly hasProgress: boolean
    })
  /** This host has no room. */
  | { readonly kind: 'noRoom'; readonly message: string }

export interface DownloadOptions {
  readonly fetch: Fetch
  /** Only for the download; in the state folder. */
  readonly folder: string
  /** Of this host, 32 bytes. The download has secrets, and may wait for content for days: the disk never has it readable. */
  readonly key: Buffer
  /** Largest file. */
  readonly limitBytes: number
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
  /** After so many bytes they are on the disk, and counted as kept. */
  readonly syncBytes?: number
}

/** The one download of this host; received bytes are kept over cuts and restarts. */
export interface Download {
  /** @throws the reason of the signal; the system's error where the disk cannot be written */
  attempt(
    order: { readonly path: string; readonly token: string; readonly etag: string },
    signal: AbortSignal,
  ): Promise<DownloadResult>
  /** The whole file with this ETag, if it is there; its sum was right when it was received. */
  wholeFile(etag: string): Promise<EncryptedFile | undefined>
  progress(): DownloadProgress | undefined
  discard(): Promise<void>
}

/** Note of the file, beside it. */
interface Kept {
  readonly etag: string
  /** SHA-256 of the whole, hex. */
  readonly sha256: string
  readonly totalBytes: number
  /** That many bytes are on the disk. */
  readonly keptBytes: number
  /** Of the file, base64; sealed in the note. */
  readonly fileKey: string
}

const defaultSyncBytes = 16 * 1_048_576
const mostBytes = 4_096
// Less than that is not worth a connection.
const leastProgress = 65_536

export function createDownload(options: DownloadOptions): Download {
  const { folder, limitBytes, reserveBytes, syncBytes = defaultSyncBytes } = options
  const [file, note] = [join(folder, 'archive'), join(folder, 'download.json')]
  const seal = createSeal(options.key)
  let progress: DownloadProgress | undefined
  /** The most that was ever kept of this ETag, also if thrown away since. */
  let furthest = { etag: '', bytes: 0 }

  async function discard(): Promise<void> {
    progress = undefined
    await rm(folder, { recursive: true, force: true })
  }

  const keep = ({ fileKey, ...kept }: Kept) => {
    const text = JSON.stringify({ ...kept, sealedKey: seal.seal(fileKey).toString('base64') })
    return replaceFile(note, `${text}\n`, 0o600).catch(refuseFull)
  }

  /** The kept part of this ETag; of another, and where the file is not as it was noted, everything is removed. */
  async function openKept(etag: string): Promise<Kept | undefined> {
    const kept = await readNote(note, seal)
    const size = await stat(file).then(
      (found) => (found.isFile() ? found.size : -1),
      () => -1,
    )
    if (kept?.etag !== etag || size < kept.keptBytes) {
      await discard()
      return undefined
    }
    // Later bytes may not have reached the disk before a power cut.
    if (size > kept.keptBytes) await truncate(file, kept.keptBytes)
    progress = { receivedBytes: kept.keptBytes, totalBytes: kept.totalBytes }
    return kept
  }

  /** Checks the length and the sum in the reply, and notes them. @throws ForeignReply */
  async function begin({ status, headers }: Fetched, etag: string, kept: Kept | undefined): Promise<Kept> {
    const own = headers.etag
    if (own !== `"${etag}"`) throw new ForeignReply('it is not what the heartbeat has announced')
    if (headers['content-encoding'] !== undefined) throw new ForeignReply('it is compressed again on the way')
    const sha256 = digestOf(headers)
    if (sha256 === undefined) throw new ForeignReply('it has no Repr-Digest with sha-256')
    // The heartbeat has announced how it begins.
    if (!sha256.startsWith(sumIn(etag))) throw new ForeignReply('its Repr-Digest is not that of its ETag')
    if (status === 206) {
      if (!kept) throw new ForeignReply('it is a part, and the whole was asked for')
      const { keptBytes, totalBytes } = kept
      if (headers['content-range'] !== `bytes ${keptBytes}-${totalBytes - 1}/${totalBytes}`)
        throw new ForeignReply('it is not the part that was asked for')
      if (sha256 !== kept.sha256) throw new ForeignReply('it is a part of something else')
      return kept
    }
    const length = headers['content-length'] ?? ''
    if (!/^\d{1,15}$/.test(length)) throw new ForeignReply('it does not say how long it is')
    const totalBytes = Number(length)
    if (totalBytes > limitBytes)
      throw new ForeignReply(`it has ${totalBytes} bytes, and this host takes ${limitBytes}`)
    await discard()
    await mkdir(folder, { recursive: true, mode: 0o700 }).catch(refuseFull)
    await syncFolder(join(folder, '..'))
    const fileKey = randomBytes(32).toString('base64')
    const next = { etag, sha256, totalBytes, keptBytes: 0, fileKey }
    const handle = await open(file, 'wx', 0o600).catch(refuseFull)
    await handle.close()
    await keep(next)
    return next
  }

  /** Writes the body. @returns the number of bytes on the disk */
  async function receive(body: AsyncIterable<Buffer>, kept: Kept): Promise<number> {
    const room = createDiskRoom({ folder, reserveBytes })
    const handle = await own(open(file, 'a'))
    let received = kept.keptBytes
    let synced = received
    const encrypt = encryptFrom(keyOf(kept), received)
    const sync = async () => {
      if (received === synced) return
      await own(handle.sync())
      await own(keep({ ...kept, keptBytes: received }))
      synced = received
    }
    try {
      for await (const piece of body) {
        if (received + piece.length > kept.totalBytes)
          throw new ForeignReply('it has more bytes than it has said')
        await own(room.take(piece.length))
        await own(writeAll(handle, encrypt(piece)))
        received += piece.length
        progress = { receivedBytes: received, totalBytes: kept.totalBytes }
        if (received - synced >= syncBytes) await sync()
      }
    } finally {
      // Bytes before a cut are kept.
      await sync().finally(() => handle.close())
    }
    if (received < kept.totalBytes) throw new ForeignReply('it ends before its end')
    return received
  }

  const encryptedOf = (kept: Kept): EncryptedFile => ({ path: file, key: keyOf(kept) })

  async function verified(kept: Kept): Promise<DownloadResult> {
    const encrypted = encryptedOf(kept)
    if ((await sumOf(encrypted)) === kept.sha256) return { kind: 'whole', file: encrypted }
    await discard()
    return { kind: 'sumWrong' }
  }

  async function attempt(
    { path, token, etag }: Parameters<Download['attempt']>[0],
    signal: AbortSignal,
  ): Promise<DownloadResult> {
    const kept = await openKept(etag)
    if (kept && kept.keptBytes === kept.totalBytes) return verified(kept)
    const from = kept?.keptBytes ?? 0
    const range = { range: `bytes=${from}-`, 'if-range': `"${etag}"` }
    const part = { isOther: false }
    const answer = await options.fetch.fetch(
      { path, token, headers: { accept: 'application/x-tar', ...(kept && from > 0 ? range : {}) } },
      signal,
      async (reply) => {
        const started = await begin(reply, etag, from > 0 ? kept : undefined).catch((error: unknown) => {
          const isForeign = error instanceof ForeignReply
          part.isOther = isForeign && reply.status === 206
          throw isForeign ? error : new OwnFailure(error)
        })
        await receive(reply.body, started)
        return started
      },
    )
    if ('done' in answer) return verified(answer.done)
    // The kept part does not fit the file of the platform: the next attempt begins anew.
    if (answer.status === 416 || part.isOther) await discard()
    const before = furthest.etag === etag ? furthest.bytes : from
    const bytes = progress?.receivedBytes ?? 0
    furthest = { etag, bytes: Math.max(before, bytes) }
    return { kind: 'failed', ...answer, hasProgress: bytes >= before + leastProgress }
  }

  return {
    discard,
    progress: () => progress,
    async wholeFile(etag) {
      const kept = await openKept(etag)
      return kept && kept.keptBytes === kept.totalBytes ? encryptedOf(kept) : undefined
    },
    attempt: (order, signal) =>
      attempt(order, signal).catch((error: unknown) => {
        if (error instanceof AppError) return { kind: 'noRoom', message: error.message }
        throw error
      }),
  }
}

/** Marks errors of this host. */
const own = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw new OwnFailure(error)
  })

async function writeAll(handle: FileHandle, piece: Buffer): Promise<void> {
  // A short write(2) precedes ENOSPC; writeFile continues from there until everything is written.
  await handle.writeFile(piece).catch(refuseFull)
}

/** RFC 9530: `sha-256=:<base64>:`, maybe among others. @returns hex */
function digestOf(headers: IncomingHttpHeaders): string | undefined {
  const text = headers['repr-digest']
  if (typeof text !== 'string') return undefined
  const [, encoded] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):\s*(?:,|$)/.exec(text) ?? []
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('hex')
}

const keyOf = ({ fileKey }: Pick<Kept, 'fileKey'>) => Buffer.from(fileKey, 'base64')

async function sumOf(file: EncryptedFile): Promise<string> {
  const sum = createHash('sha256')
  for await (const piece of readEncrypted(file)) sum.update(piece)
  return sum.digest('hex')
}

/** @returns undefined also where the secret of this host is another one by now, or the file is of a version that did not encrypt it */
async function readNote(path: string, seal: Seal): Promise<Kept | undefined> {
  try {
    const { bytes } = await readRegularFile(path, mostBytes)
    const { etag, sha256, totalBytes, keptBytes, sealedKey } = JSON.parse(bytes.toString()) as Partial<
      Record<keyof Kept | 'sealedKey', unknown>
    >
    const fileKey = typeof sealedKey === 'string' ? seal.open(Buffer.from(sealedKey, 'base64')) : undefined
    return fileKey !== undefined &&
      typeof etag === 'string' &&
      typeof sha256 === 'string' &&
      Number.isSafeInteger(totalBytes) &&
      Number.isSafeInteger(keptBytes)
      ? { etag, sha256, totalBytes: totalBytes as number, keptBytes: keptBytes as number, fileKey }
      : undefined
  } catch {
    return undefined
  }
}
