import type { Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'

/** Bytes that came and went so far. */
export interface Flow {
  readonly compressedBytes: number
  readonly unpackedBytes: number
}

// The magic numbers of RFC 1952 and RFC 8878.
const gzipMagic = Buffer.from([0x1f, 0x8b, 0x08])
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
const chunkSize = 262_144

/**
 * What is in a stream of gzip or Zstandard, which of them its first bytes say.
 * @param onFlow is told after each chunk
 * @throws AppError when it is neither, is damaged, ends early, goes on behind its end, or unpacks to more than the
 *   limits allow; the source's own error as it is
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
  let compressedBytes = 0
  let unpackedBytes = 0
  const start = await readStart(input)
  const decompressor = choose(start, limits)

  async function* feed() {
    compressedBytes += start.length
    yield start
    for (let next = await input.next(); !next.done; next = await input.next()) {
      compressedBytes += next.value.length
      yield next.value
    }
  }

  const feeding = pipeline(feed, decompressor as Duplex)
  // It fails together with the loop, which says so.
  feeding.catch(() => undefined)
  try {
    for await (const chunk of decompressor as AsyncIterable<Buffer>) {
      unpackedBytes += chunk.length
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
          `unpacks to more than ${limits.ratio} times its size, as no definition does`,
        )
      onFlow({ compressedBytes, unpackedBytes })
      yield chunk
    }
    await feeding
  } catch (error) {
    throw explain(error)
  } finally {
    decompressor.destroy()
  }
  // Node leaves unread what is behind the end where it is zeros or came with the last bytes.
  if (decompressor.bytesWritten !== compressedBytes)
    throw refuse('TrailingBytes', undefined, 'goes on behind its end; copy or build it again')
}

/** As many chunks as hold the magic number. */
async function readStart(input: AsyncIterator<Buffer, undefined>): Promise<Buffer> {
  let start: Buffer = Buffer.alloc(0)
  while (start.length < zstdMagic.length) {
    const next = await input.next()
    if (next.done) break
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value])
  }
  return start
}

function choose(start: Buffer, limits: ArchiveLimits): Gunzip | ZstdDecompress {
  if (start.subarray(0, 3).equals(gzipMagic)) return createGunzip({ chunkSize })
  if (start.subarray(0, 4).equals(zstdMagic))
    return createZstdDecompress({
      chunkSize,
      params: { [constants.ZSTD_d_windowLogMax]: limits.zstdWindowLog },
    })
  throw refuse(
    'NotCompressed',
    undefined,
    'is neither gzip nor Zstandard; a definition is a .tgz or a .tar.zst',
  )
}

function explain(error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === 'Z_BUF_ERROR') return refuse('Truncated', undefined, 'ends too early; copy it again', error)
  if (code === 'ZSTD_error_frameParameter_windowTooLarge')
    return refuse(
      'WindowTooLarge',
      undefined,
      'needs more memory to be unpacked than is allowed; compress it with zstd -19 or less and without --long',
      error,
    )
  if (/^Z(?:STD)?_/.test(code))
    return refuse('Damaged', undefined, `is damaged (${message}); copy it again`, error)
  return error
}
