import type { Readable } from 'node:stream'
import { constants, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'

/** Finds where frames of Zstandard end, without decompressing them. */
interface FrameScanner {
  /**
   * Reads on in the current frame.
   * @returns the end of the frame in these bytes; undefined if it is not in them. Bytes after it belong to the next frame.
   */
  scan(bytes: Buffer): number | undefined
}

const magicBytes = 4
const blockHeaderBytes = 3
const checksumBytes = 4

/**
 * Scans frames one after the other by the sizes in them, RFC 8878, 3.1. Bytes that are no frame, or are damaged, make it return
 * wrong places, never an error: the decompressor decides.
 */
export function createFrameScanner(): FrameScanner {
  const field = Buffer.alloc(8)
  let filled: number
  /** Bytes of the field that is being read; what follows it is skipped. */
  let wanted: number
  let skipped: number
  /** Handler of the field; returns false at the end of the frame. */
  let onField: () => boolean

  function read(bytes: number, then: () => boolean): true {
    ;[filled, wanted, onField] = [0, bytes, then]
    return true
  }
  function begin(): void {
    skipped = 0
    read(magicBytes, readMagic)
  }

  function readMagic(): boolean {
    // The size of a skippable frame, or the descriptor of any other one, 3.1.1.1.1.
    return (field.readUInt8() & 0xf0) === 0x50 ? read(4, readSkippable) : read(1, readDescriptor)
  }
  function readSkippable(): boolean {
    skipped = field.readUInt32LE()
    return false
  }
  function readDescriptor(): boolean {
    const descriptor = field.readUInt8()
    const isSingleSegment = (descriptor & 0x20) !== 0
    const sizeFlag = descriptor >> 6
    const sizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag
    const dictionaryFlag = descriptor & 3
    const dictionaryBytes = dictionaryFlag === 3 ? 4 : dictionaryFlag
    skipped = (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes
    const hasChecksum = (descriptor & 4) !== 0
    return read(blockHeaderBytes, () => readBlock(hasChecksum))
  }
  function readBlock(hasChecksum: boolean): boolean {
    const header = field.readUIntLE(0, blockHeaderBytes)
    // A block of one repeated byte has that byte only.
    skipped = ((header >> 1) & 3) === 1 ? 1 : header >> 3
    if ((header & 1) === 0) return read(blockHeaderBytes, () => readBlock(hasChecksum))
    if (hasChecksum) skipped += checksumBytes
    return false
  }

  begin()
  let isLast = false
  return {
    scan(bytes) {
      for (let at = 0; ;) {
        const step = Math.min(skipped, bytes.length - at)
        at += step
        skipped -= step
        if (skipped > 0) return undefined
        if (isLast) {
          isLast = false
          begin()
          return at
        }
        if (at === bytes.length) return undefined
        const end = Math.min(bytes.length, at + wanted - filled)
        filled += bytes.copy(field, filled, at, end)
        at = end
        if (filled === wanted) isLast = !onField()
      }
    },
  }
}

/** Number of bytes read and unpacked so far. */
export interface Flow {
  readonly compressedBytes: number
  readonly unpackedBytes: number
}

// The magic numbers of RFC 1952 and RFC 8878.
const gzipMagic = Buffer.from([0x1f, 0x8b, 0x08])
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
// A skippable frame has 16 magic numbers, from 50 2a 4d 18 to 5f 2a 4d 18; its size follows. RFC 8878, 3.1.2.
const skippableMagic = Buffer.from([0x2a, 0x4d, 0x18])
// End of the magic `ustar` in the first header of a tar, POSIX.1-2024 pax(1).
const tarMagicEnd = 262
const chunkSize = 262_144

/**
 * Decompresses a gzip or Zstandard stream, or passes on a plain tar where the limits allow it; the first bytes decide.
 * @param onFlow called after each chunk
 * @throws AppError when it is none of these, is damaged, ends early, has bytes after its end, or unpacks to more than the
 * limits allow; an error of the source is thrown unchanged
 */
export async function* decompress(
  source: Readable,
  limits: ArchiveLimits,
  onFlow: (flow: Flow) => void = () => undefined,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* unpack(source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>, limits, onFlow)
  } finally {
    source.destroy()
  }
}

async function* unpack(
  input: AsyncIterator<Buffer, undefined>,
  limits: ArchiveLimits,
  onFlow: (flow: Flow) => void,
): AsyncGenerator<Buffer, void, undefined> {
  const flow = { compressedBytes: 0, unpackedBytes: 0 }
  let unread: Buffer | undefined
  const counted: AsyncIterator<Buffer, undefined> = {
    async next() {
      if (unread) {
        const value = unread
        unread = undefined
        return { value }
      }
      const next = await input.next()
      flow.compressedBytes += next.value?.length ?? 0
      return next
    },
  }
  const count = (chunk: Buffer): Buffer => {
    flow.unpackedBytes += chunk.length
    checkFlow(flow, limits)
    onFlow({ ...flow })
    return chunk
  }
  let frames = 0
  const countFrame = () => {
    frames += 1
    if (frames > limits.frames) throw trailingBytes()
  }
  /** Cuts chunks at the ends of frames: Node takes a frame that ends within a chunk for the end of the stream. */
  const cutFrames = () => {
    const scanner = createFrameScanner()
    return (chunk: Buffer): Buffer => {
      const end = scanner.scan(chunk)
      if (end === undefined) return chunk
      countFrame()
      if (end < chunk.length) unread = chunk.subarray(end)
      return chunk.subarray(0, end)
    }
  }

  let start = await readStart(counted, Buffer.alloc(0), zstdMagic.length)
  if (!isPacked(start)) {
    yield* passPlain(start, counted, limits, count)
    return
  }
  while (start.length > 0) {
    if (!isPacked(start)) throw trailingBytes()
    countFrame()
    const [decompressor, cut] = isGzip(start)
      ? [createGunzip({ chunkSize }), (chunk: Buffer) => chunk]
      : [
          createZstdDecompress({
            chunkSize,
            params: { [constants.ZSTD_d_windowLogMax]: limits.zstdWindowLog },
          }),
          cutFrames(),
        ]
    const feed = createFeed(start, { input: counted, cut }, decompressor)
    try {
      for await (const chunk of decompressor as AsyncIterable<Buffer>) yield count(chunk)
    } catch (error) {
      throw explain(error, limits)
    } finally {
      decompressor.destroy()
    }
    // Some writers append an empty frame.
    start = await readStart(counted, feed.leftover(), zstdMagic.length)
  }
}

/** Bytes that `isPacked` needs. */
export const packedStartBytes = zstdMagic.length

/** Whether a file that begins with these bytes is gzip or Zstandard. */
export const isPacked = (start: Buffer): boolean => isGzip(start) || isZstd(start)

const isGzip = (start: Buffer) => start.subarray(0, gzipMagic.length).equals(gzipMagic)

const isZstd = (start: Buffer) =>
  start.length >= zstdMagic.length &&
  (start.subarray(0, zstdMagic.length).equals(zstdMagic) ||
    ((start.readUInt8() & 0xf0) === 0x50 && start.subarray(1, zstdMagic.length).equals(skippableMagic)))

/** Passes on a tar without compression. */
async function* passPlain(
  first: Buffer,
  input: AsyncIterator<Buffer, undefined>,
  limits: ArchiveLimits,
  count: (chunk: Buffer) => Buffer,
): AsyncGenerator<Buffer, void, undefined> {
  if (first.length === 0) throw refuse('NotCompressed', undefined, 'is empty; make it again')
  const start = limits.isPlainAllowed ? await readStart(input, first, tarMagicEnd) : first
  if (!limits.isPlainAllowed || !start.subarray(0, tarMagicEnd).toString('latin1').endsWith('ustar'))
    throw refuse(
      'NotCompressed',
      undefined,
      limits.isPlainAllowed
        ? `is neither tar, gzip nor Zstandard; a ${limits.noun} is a .tar, a .tar.gz or a .tar.zst`
        : `is neither gzip nor Zstandard; a ${limits.noun} is a .tgz or a .tar.zst`,
    )
  yield count(start)
  for (let next = await input.next(); !next.done; next = await input.next()) yield count(next.value)
}

function checkFlow({ compressedBytes, unpackedBytes }: Flow, limits: ArchiveLimits): void {
  if (unpackedBytes > limits.unpackedBytes)
    throw refuse(
      'TooLarge',
      undefined,
      `unpacks to more than the ${limits.unpackedBytes} bytes that are allowed`,
    )
  if (unpackedBytes > limits.ratioFreeBytes && unpackedBytes > limits.ratio * compressedBytes)
    throw refuse(
      'RatioTooHigh',
      undefined,
      `unpacks to more than ${limits.ratio} times its size, as no ${limits.noun} does`,
    )
}

/**
 * Writes chunk by chunk, each after the previous one has been consumed, so that only the last one can have leftover
 * bytes.
 */
function createFeed(
  start: Buffer,
  source: { readonly input: AsyncIterator<Buffer, undefined>; readonly cut: (chunk: Buffer) => Buffer },
  decompressor: Gunzip | ZstdDecompress,
) {
  let fed = 0
  let last = start
  const write = (chunk: Buffer) =>
    new Promise<void>((resolve, reject) => {
      last = chunk
      fed += chunk.length
      decompressor.write(chunk, (error) => (error ? reject(error) : resolve()))
    })
  const run = async () => {
    await write(source.cut(start))
    // Fewer bytes were used than given: the stream ended within the chunk.
    while (decompressor.bytesWritten === fed) {
      const next = await source.input.next()
      if (next.done) {
        decompressor.end()
        return
      }
      await write(source.cut(next.value))
    }
  }
  run().catch((error: unknown) => decompressor.destroy(error as Error))
  return { leftover: () => last.subarray(last.length - (fed - decompressor.bytesWritten)) }
}

/** Reads as many chunks as that many bytes need. */
async function readStart(
  input: AsyncIterator<Buffer, undefined>,
  first: Buffer,
  bytes: number,
): Promise<Buffer> {
  let start = first
  while (start.length < bytes) {
    const next = await input.next()
    if (next.done) break
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value])
  }
  return start
}

function explain(error: unknown, { zstdWindowLog }: ArchiveLimits): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === 'Z_BUF_ERROR') return truncated(error)
  if (code === 'ZSTD_error_frameParameter_windowTooLarge')
    return refuse(
      'WindowTooLarge',
      undefined,
      `needs more memory to unpack than is allowed; compress it with ${
        zstdWindowLog < 27 ? 'zstd -19 or less and without --long' : 'zstd --long=27 or less'
      }`,
      error,
    )
  if (code === 'ZSTD_error_prefix_unknown') return trailingBytes(error)
  if (/^Z(?:STD)?_/.test(code))
    return refuse('Damaged', undefined, `is damaged (${message}); copy it again`, error)
  return error
}

const truncated = (cause?: unknown) => refuse('Truncated', undefined, 'ends too early; copy it again', cause)

const trailingBytes = (cause?: unknown) =>
  refuse('TrailingBytes', undefined, 'has bytes after its end; copy or build it again', cause)

/** Name of a bundle: its file name without the endings of an archive, the same for each kind of upload. Pure. */
export const bundleNameOf = (fileName: string): string =>
  fileName.replace(/\.(?:tar|tgz|tar\.gz|tar\.zst)$/, '')
