import type { Readable } from 'node:stream'
import { constants, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'

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
const skippableHeaderBytes = 8
// Where the magic `ustar` ends in the first header of a tar, POSIX.1-2024 pax(1).
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
  const counted: AsyncIterator<Buffer, undefined> = {
    async next() {
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
  let start = await readStart(counted, Buffer.alloc(0), zstdMagic.length)
  if (!isCompressed(start) && !isSkippable(start)) {
    yield* passPlain(start, counted, limits, count)
    return
  }
  for (let frames = 0; start.length > 0; frames += 1) {
    if (frames > limits.frames) throw trailingBytes()
    if (isSkippable(start)) {
      // pzstd writes one before each frame.
      start = await skipFrame(start, counted)
      continue
    }
    if (!isCompressed(start)) throw trailingBytes()
    const decompressor = start.subarray(0, 3).equals(gzipMagic)
      ? createGunzip({ chunkSize })
      : createZstdDecompress({
          chunkSize,
          params: { [constants.ZSTD_d_windowLogMax]: limits.zstdWindowLog },
        })
    const feed = createFeed(start, counted, decompressor)
    try {
      for await (const chunk of decompressor as AsyncIterable<Buffer>) yield count(chunk)
    } catch (error) {
      throw explain(error, limits)
    } finally {
      decompressor.destroy()
    }
    // Node stops after a Zstandard frame that ends within a chunk, and some writers append an empty frame.
    start = await readStart(counted, feed.leftover(), zstdMagic.length)
  }
}

const isCompressed = (start: Buffer) =>
  start.subarray(0, 3).equals(gzipMagic) || start.subarray(0, 4).equals(zstdMagic)

const isSkippable = (start: Buffer) =>
  start.length >= zstdMagic.length &&
  (start.readUInt8() & 0xf0) === 0x50 &&
  start.subarray(1, zstdMagic.length).equals(skippableMagic)

/** Reads to the end of a skippable frame, and the start of the next frame. */
async function skipFrame(first: Buffer, input: AsyncIterator<Buffer, undefined>): Promise<Buffer> {
  let start = await readStart(input, first, skippableHeaderBytes)
  if (start.length < skippableHeaderBytes) throw truncated()
  let left = skippableHeaderBytes + start.readUInt32LE(zstdMagic.length)
  while (left > start.length) {
    left -= start.length
    const next = await input.next()
    if (next.done) throw truncated()
    start = next.value
  }
  return readStart(input, start.subarray(left), zstdMagic.length)
}

/** Passes on a tar without compression. */
async function* passPlain(
  first: Buffer,
  input: AsyncIterator<Buffer, undefined>,
  limits: ArchiveLimits,
  count: (chunk: Buffer) => Buffer,
): AsyncGenerator<Buffer, void, undefined> {
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
  input: AsyncIterator<Buffer, undefined>,
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
    await write(start)
    // Fewer bytes were used than given: the stream ended within the chunk.
    while (decompressor.bytesWritten === fed) {
      const next = await input.next()
      if (next.done) {
        decompressor.end()
        return
      }
      await write(next.value)
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
