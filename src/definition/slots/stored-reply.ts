import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'

/** A reply that is the content of a file with text before and after it. */
export interface StoredReply {
  readonly sizeBytes: number
  /** The caller has to read or destroy it. */
  readonly content: Readable
}

/** Replies from files that never change. The file that was last requested stays in memory for a while. */
export interface StoredReplies {
  /**
   * @param name of the file; never reused for another one
   * @param open opens it; undefined if it was removed
   * @returns undefined if the file was removed
   */
  reply(order: {
    readonly name: string
    readonly open: () => Promise<FileHandle | undefined>
    readonly before: string
    readonly after: string
  }): Promise<StoredReply | undefined>
}

interface Body {
  readonly sizeBytes: number
  pieces(): Iterable<Buffer> | AsyncIterable<Buffer>
  close(): void
}

// While one piece is sent the next is encrypted: 7 MB take half as long as in one piece.
const pieceBytes = 131_072
// A client usually asks again soon. If the file were read each time, V8 would run a full garbage collection at almost
// every reply.
const keptMs = 60_000
const keptBytes = 16_777_216

export function createStoredReplies(): StoredReplies {
  let kept: { readonly name: string; readonly body: Body } | undefined
  const forget = setTimeout(() => (kept = undefined), keptMs).unref()

  async function find(name: string, open: () => Promise<FileHandle | undefined>): Promise<Body | undefined> {
    forget.refresh()
    if (kept?.name === name) return kept.body
    const file = await open()
    if (!file) return undefined
    const { size } = await file.stat()
    if (size > keptBytes) return onDisk(file, size)
    const body = inMemory(await file.readFile().finally(() => file.close()))
    kept = { name, body }
    return body
  }

  return {
    async reply({ name, open, before, after }) {
      const body = await find(name, open)
      return body && wrap(body, Buffer.from(before), Buffer.from(after))
    },
  }
}

/** A reply without a file. */
export function textReply(text: string): StoredReply {
  const content = Buffer.from(text)
  return { sizeBytes: content.length, content: Readable.from([content], { objectMode: false }) }
}

function wrap(body: Body, before: Buffer, after: Buffer): StoredReply {
  async function* pieces(): AsyncGenerator<Buffer> {
    yield before
    yield* body.pieces()
    yield after
  }
  const content = Readable.from(pieces(), { objectMode: false, highWaterMark: pieceBytes })
  // Also if the client has not begun to read.
  content.once('close', () => body.close())
  return { sizeBytes: before.length + body.sizeBytes + after.length, content }
}

const inMemory = (content: Buffer): Body => ({
  sizeBytes: content.length,
  *pieces() {
    for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes)
  },
  close: () => undefined,
})

const onDisk = (file: FileHandle, sizeBytes: number): Body => ({
  sizeBytes,
  pieces: () => file.createReadStream({ highWaterMark: pieceBytes, autoClose: false }),
  close: () => void file.close(),
})
