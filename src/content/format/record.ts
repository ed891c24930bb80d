import { createHash } from 'node:crypto'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { isDigest } from './descriptor.ts'
import type { Entry } from './entry.ts'

/** Facts of a bundle in its record. */
export interface BundleFacts {
  readonly uid: string
  readonly name: string
  /** Digest of index.json: the identity of the bundle. */
  readonly indexDigest: string
  /** Milliseconds since 1970, UTC, by the clock of the host. */
  readonly publishedAt: number
  /**
   * The newer of two bundles has the higher number: `publishedAt`, or one more than the highest before where the clock was set back.
   * Missing in records of earlier versions, where `publishedAt` counts.
   */
  readonly publication?: number
  /** Name and size of the uploaded file; empty and 0 for a bundle that came blob by blob. */
  readonly fileName: string
  readonly fileSizeBytes: number
  /** Hexadecimal. */
  readonly fileSha256: string
  readonly via: 'file' | 'blobs'
  /** All its blobs, with index.json. */
  readonly sizeBytes: number
  readonly blobCount: number
  /** Blobs that its manifests name and that it may lack, as the image for another platform; absent if it has all. */
  readonly lackingBlobs?: number
  /** The archive of the definition inside. */
  readonly definition?: { readonly digest: string; readonly sizeBytes: number }
}

/** A blob and its size in bytes; `document` for an index or a manifest. */
export type RecordedBlob = readonly [digest: string, sizeBytes: number, document?: RecordedDocument]

/** Facts of an index or a manifest for a registry. */
export interface RecordedDocument {
  readonly mediaType: string
  /** Present where it belongs to another index or manifest. */
  readonly referrer?: Referrer
}

/** An index or manifest that belongs to another one, as a signature does. */
export interface Referrer {
  /** Digest of the other one, which need not be here. */
  readonly subject: string
  /** The media type of the configuration for a manifest without one. */
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

// A reader refuses a higher number.
const recordFormat = 1
const pieceCharacters = 65_536
// An entry with the names of thousands of files.
const longestLine = 64 * 2 ** 20

/**
 * The text of a record, in pieces of about 64 KiB: a line of JSON for the bundle, one for each entry, one for each blob,
 * and a last one with the SHA-256 of all bytes before it. The blobs are in the order of their digests: the index of the store
 * then changes few pages at a time, and writes a seventh of the bytes.
 */
export function* formatRecord(
  bundle: BundleFacts,
  entries: Iterable<Entry>,
  blobs: Iterable<RecordedBlob>,
): Generator<string> {
  const sum = createHash('sha256')
  let piece = ''
  const lines = function* () {
    yield { format: recordFormat, bundle }
    for (const entry of entries) yield { entry }
    for (const blob of [...blobs].sort(byDigest)) yield { blob }
  }
  for (const line of lines()) {
    piece += `${JSON.stringify(line)}\n`
    if (piece.length < pieceCharacters) continue
    sum.update(piece)
    yield piece
    piece = ''
  }
  sum.update(piece)
  yield `${piece}${JSON.stringify({ end: sum.digest('hex') })}\n`
}

const byDigest = ([one]: RecordedBlob, [other]: RecordedBlob) => (one < other ? -1 : one > other ? 1 : 0)

/** Why a record cannot be used: it is cut off, was altered, or is of a newer version. */
export class RecordDamaged extends Error {
  override readonly name = 'RecordDamaged'
}

export interface RecordReceiver {
  onEntry?(entry: Entry): void
  onBlob?(blob: RecordedBlob): void
}

/**
 * Reads a record piece by piece, so that a large one does not block the event loop.
 * @param pieces of the file, from a stream that takes turns with other work
 * @param receiver gets lines before the sum is checked; these do not count if this rejects
 * @throws RecordDamaged
 */
export async function readRecord(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  receiver: RecordReceiver = {},
): Promise<BundleFacts> {
  const parser = createRecordParser(receiver)
  for await (const piece of pieces) parser.add(piece)
  return parser.end()
}

/** The reader of a record, for a caller that feeds it. Both functions throw RecordDamaged. */
export function createRecordParser({ onEntry, onBlob }: RecordReceiver) {
  const sum = createHash('sha256')
  const line = createGrowingBuffer(longestLine)
  let bundle: BundleFacts | undefined
  let blobCount = 0
  let isEnded = false

  /** The line with its end: one call of the hash for each of 100,000 lines. */
  const takeLine = () => {
    const bytes = line.bytes()
    if (isEnded) throw new RecordDamaged('has lines after its end')
    const value = parseLine(bytes)
    if (bundle === undefined) bundle = readFacts(value)
    else if ('end' in value) {
      if (value.end !== sum.digest('hex')) throw new RecordDamaged('was altered: its SHA-256 differs')
      isEnded = true
    } else if ('blob' in value) {
      blobCount += 1
      onBlob?.(readBlob(value.blob))
    } else if ('entry' in value) onEntry?.(value.entry as Entry)
    else throw new RecordDamaged('has a line of an unknown kind')
    if (!isEnded) sum.update(bytes)
    line.clear()
  }
  return {
    add(piece: Uint8Array): void {
      let from = 0
      for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, from)) {
        if (!line.add(piece.subarray(from, end + 1))) throw new RecordDamaged('has a line that is too long')
        takeLine()
        from = end + 1
      }
      if (!line.add(piece.subarray(from))) throw new RecordDamaged('has a line that is too long')
    },
    end(): BundleFacts {
      if (bundle === undefined || !isEnded || line.bytes().length > 0) throw new RecordDamaged('is cut off')
      if (blobCount !== bundle.blobCount)
        throw new RecordDamaged(`has ${blobCount} blobs and should have ${bundle.blobCount}`)
      return bundle
    },
  }
}

function parseLine(bytes: Buffer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    value = undefined
  }
  if (typeof value !== 'object' || value === null) throw new RecordDamaged('has a line that is not JSON')
  return value as Record<string, unknown>
}

function readFacts({ format, bundle }: Record<string, unknown>): BundleFacts {
  if (typeof format === 'number' && format > recordFormat)
    throw new RecordDamaged(`has format ${format}; this version reads up to ${recordFormat}`)
  if (format !== recordFormat || typeof bundle !== 'object' || bundle === null)
    throw new RecordDamaged('does not begin as a record')
  return bundle as BundleFacts
}

function readBlob(blob: unknown): RecordedBlob {
  const [digest, sizeBytes, document] = Array.isArray(blob) ? (blob as unknown[]) : []
  if (typeof digest !== 'string' || !isDigest(digest) || !Number.isSafeInteger(sizeBytes))
    throw new RecordDamaged('has a line of a blob without digest and size')
  if (document === undefined) return [digest, sizeBytes as number]
  return [digest, sizeBytes as number, document as RecordedDocument]
}
