import type { FastifyRequest, FastifyReply } from 'fastify'
import type { FileHandle } from 'node:fs/promises'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { apiErrors } from './codes.ts'
import { matchesEtag } from './etag.ts'
import { onClosing } from './request-end.ts'
import { mostOfStream } from './connection/waiting-replies.ts'

/** Bytes of a file: `start` and `end`, the last one included. */
interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses the field `Range` of a request (RFC 9110, 14.1 and 14.2).
 * @returns undefined where the whole file is to be sent: without the field, for one that breaks the grammar, and for several
 *   ranges, which a server may answer so. `unsatisfiable` for a range without a byte of the file.
 */
export function parseRange(
  field: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(field ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const count = Math.min(Number(last), sizeBytes)
    return count === 0 ? 'unsatisfiable' : { start: sizeBytes - count, end: sizeBytes - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= sizeBytes) return 'unsatisfiable'
  return { start, end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
}

/** The range of a request; with `If-Range` it counts only for the same content (RFC 9110, 13.1.5). */
function rangeFor({ headers }: FastifyRequest, etag: string, sizeBytes: number) {
  const condition = headers['if-range']
  return condition === undefined || condition === etag ? parseRange(headers.range, sizeBytes) : undefined
}

/** What a reply sends whole, or a range of. */
interface Sent {
  /** With its quotes. */
  readonly etag: string
  readonly sizeBytes: number
  /** Header fields of the reply, beside the fields of the range. */
  readonly headers: Readonly<Record<string, string>>
}

/** The part that a request asks for, and the head of its reply. */
interface AskedPart {
  /** First byte. */
  readonly start: number
  /** Bytes of the part. */
  readonly sizeBytes: number
  /** Sets status and header fields. */
  readonly begin: () => FastifyReply
}

/**
 * The part of a content that a request asks for; the whole for a HEAD request (RFC 9110, 14.2).
 * @throws AppError RangeUnsatisfiable
 */
export function askedPart(
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, sizeBytes, headers }: Sent,
): AskedPart {
  const range = request.method === 'GET' ? rangeFor(request, etag, sizeBytes) : undefined
  if (range === 'unsatisfiable') {
    void reply.header('content-range', `bytes */${sizeBytes}`)
    throw new AppError(apiErrors.RangeUnsatisfiable, `the range is not within the ${sizeBytes} bytes`)
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 }
  return {
    start,
    sizeBytes: end + 1 - start,
    begin: () =>
      reply.code(range ? 206 : 200).headers({
        ...headers,
        etag,
        'accept-ranges': 'bytes',
        'content-length': end + 1 - start,
        ...(range ? { 'content-range': `bytes ${start}-${end}/${sizeBytes}` } : {}),
      }),
  }
}

/** Sends parts of files as replies, with a bounded amount of memory for all of them. */
export interface FileSender {
  /**
   * Sends a reply and ends it. The file stays open. If the client disconnects, the reply ends early.
   * @throws ReadFailed; nothing of the reply was sent then, or the connection is cut, so that no client takes the part for the whole
   */
  send(part: FilePart): Promise<void>
  /** Bytes of all replies since the start. */
  sentBytes(): number
}

interface FilePart {
  /** Not needed where none of its bytes are sent. */
  readonly file?: FileHandle
  /** First byte. */
  readonly start: number
  /** Bytes of the file. */
  readonly sizeBytes: number
  /** Bytes before and after the bytes of the file, by default none. */
  readonly before?: Buffer
  readonly after?: Buffer
  /** Called when the first bytes are read. @returns the reply, with its status and headers */
  readonly begin: () => FastifyReply
}

/** A file could not be read, or ended too early. */
export class ReadFailed extends Error {
  override readonly name = 'ReadFailed'
}

// A piece is read while the client reads the one before from the buffers of the kernel. Larger ones are not faster.
const mostPieceBytes = mostOfStream
const leastPieceBytes = 16_384
// Of all replies at once, without replies of the smallest pieces: of some hundred, later ones get an eighth of the rest.
const memoryBytes = 16_777_216
const share = 8
const none = Buffer.alloc(0)

export function createFileSender(): FileSender {
  let heldBytes = 0
  let sentBytes = 0

  async function send(part: FilePart): Promise<void> {
    const { before = none, after = none } = part
    const sizeBytes = before.length + part.sizeBytes + after.length
    const free = Math.floor((memoryBytes - heldBytes) / share)
    const pieceBytes = Math.min(sizeBytes, Math.max(leastPieceBytes, Math.min(mostPieceBytes, free)))
    heldBytes += pieceBytes
    try {
      await sendBy(Buffer.allocUnsafeSlow(pieceBytes), { ...part, before, after })
    } finally {
      heldBytes -= pieceBytes
    }
  }

  async function sendBy(
    buffer: Buffer,
    { file, start, before, after, begin, ...part }: FilePart & Required<Pick<FilePart, 'before' | 'after'>>,
  ): Promise<void> {
    const fileEnd = before.length + part.sizeBytes
    const sizeBytes = fileEnd + after.length
    const readAt = async (at: number) => {
      if (at < before.length) return buffer.subarray(0, before.copy(buffer, 0, at))
      if (at >= fileEnd) return buffer.subarray(0, after.copy(buffer, 0, at - fileEnd))
      const wanted = Math.min(buffer.length, fileEnd - at)
      const place = start + at - before.length
      if (file === undefined) throw new ReadFailed('there is no file')
      const { bytesRead } = await file.read(buffer, 0, wanted, place).catch((error: unknown) => {
        const { code = 'unknown error' } = error as NodeJS.ErrnoException
        throw new ReadFailed(`its file cannot be read at byte ${place}: ${code}`)
      })
      if (bytesRead === 0) throw new ReadFailed(`its file ends at byte ${place}`)
      return buffer.subarray(0, bytesRead)
    }
    let piece = sizeBytes === 0 ? buffer : await readAt(0)
    const reply = begin()
    const response = reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders)
    for (let at = 0; ;) {
      const isLast = at + piece.length === sizeBytes
      // The buffer is used again only when the kernel has all of the piece.
      if (!(await write(response, piece, isLast))) return
      at += piece.length
      sentBytes += piece.length
      if (isLast) return
      piece = await readAt(at).catch((error: unknown) => {
        // Ended in the regular way, the part would look like the whole to a client that does not count.
        response.destroy()
        throw error
      })
    }
  }

  /** @returns whether the connection is still open */
  function write(response: ServerResponse, piece: Buffer, isLast: boolean): Promise<boolean> {
    const { socket } = response.req
    return new Promise((resolve) => {
      const ignore = onClosing(socket, () => resolve(false))
      const done = (error?: Error | null) => {
        ignore()
        resolve(!error)
      }
      if (!isLast) {
        response.write(piece, done)
        return
      }
      // Not by `end` alone, which is for replies that are whole.
      response.write(piece)
      response.end(done)
    })
  }

  return { send, sentBytes: () => sentBytes }
}

/**
 * The same as a stream, for a reply that the audit hook records: a reply of `FileSender` passes it by. It closes the file when it ends. A file that
 * ends too early breaks the connection.
 */
export function readPart(
  file: FileHandle,
  { start, sizeBytes }: Pick<AskedPart, 'start' | 'sizeBytes'>,
): Readable {
  async function* pieces() {
    try {
      for (let at = 0; at < sizeBytes;) {
        const buffer = Buffer.allocUnsafeSlow(Math.min(mostPieceBytes, sizeBytes - at))
        const { bytesRead } = await file.read(buffer, 0, buffer.length, start + at)
        if (bytesRead === 0) throw new ReadFailed(`its file ends at byte ${start + at}`)
        at += bytesRead
        yield buffer.subarray(0, bytesRead)
      }
    } finally {
      await file.close()
    }
  }
  return Readable.from(pieces(), { objectMode: false })
}

/**
 * Replies with an opened file, or the part of it that a request asks for; 304 to a client that has it. The file is closed by it in any case.
 * @throws AppError RangeUnsatisfiable
 */
export async function sendOpened(
  request: FastifyRequest,
  reply: FastifyReply,
  file: FileHandle,
  sent: Sent,
): Promise<FastifyReply> {
  try {
    if (matchesEtag(request, sent.etag)) {
      await file.close()
      return await reply.header('etag', sent.etag).code(304).send()
    }
    const part = askedPart(request, reply, sent)
    return await part.begin().send(readPart(file, part))
  } catch (error) {
    await file.close()
    throw error
  }
}

/** `Content-Disposition` for a file of this name (RFC 6266, 4.3); other names than ASCII by RFC 8187. */
export function attachment(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${encoded}`}`
}
