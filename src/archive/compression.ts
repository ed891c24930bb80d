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
const chunkSize = 262_144

/**
 * Decompresses a gzip or Zstandard stream; its first bytes decide which.
 * @param onFlow called after each chunk
 * @throws AppError when it is neither, is damaged, ends early, has bytes after its end, or unpacks to more than the
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
  let start = await readStart(counted, Buffer.alloc(0))
  for (let frames = 0; frames === 0 || start.length > 0; frames += 1) {
    const decompressor = choose(start, limits)
    if (decompressor === undefined || frames > limits.frames)
      throw frames === 0
        ? refuse(
            'NotCompressed',
            undefined,
            'is neither gzip nor Zstandard; a definition is a .tgz or a .tar.zst',
          )
        : refuse('TrailingBytes', undefined, 'has bytes after its end; copy or build it again')
    const feed = createFeed(start, counted, decompressor)
    try {
      for await (const chunk of decompressor as AsyncIterable<Buffer>) {
        flow.unpackedBytes += chunk.length
        checkFlow(flow, limits)
        onFlow({ ...flow })
        yield chunk
      }
    } catch (error) {
      throw explain(error)
    } finally {
      decompressor.destroy()
    }
    // Node stops after a Zstandard frame that ends within a chunk, and some writers append an empty frame.
    start = await readStart(counted, feed.leftover())
  }
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
      `unpacks to more than ${limits.ratio} times its size, as no definition does`,
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

/** Reads as many chunks as the magic number needs. */
async function readStart(input: AsyncIterator<Buffer, undefined>, first: Buffer): Promise<Buffer> {
  let start = first
  while (start.length < zstdMagic.length) {
    const next = await input.next()
    if (next.done) break
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value])
  }
  return start
}

function choose(start: Buffer, limits: ArchiveLimits): Gunzip | ZstdDecompress | undefined {
  if (start.subarray(0, 3).equals(gzipMagic)) return createGunzip({ chunkSize })
  if (!start.subarray(0, 4).equals(zstdMagic)) return undefined
  return createZstdDecompress({
    chunkSize,
    params: { [constants.ZSTD_d_windowLogMax]: limits.zstdWindowLog },
  })
}

function explain(error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === 'Z_BUF_ERROR') return refuse('Truncated', undefined, 'ends too early; copy it again', error)
  if (code === 'ZSTD_error_frameParameter_windowTooLarge')
    return refuse(
      'WindowTooLarge',
      undefined,
      'needs more memory to unpack than is allowed; compress it with zstd -19 or less and without --long',
      error,
    )
  if (code === 'ZSTD_error_prefix_unknown')
    return refuse('TrailingBytes', undefined, 'has bytes after its end; copy or build it again', error)
  if (/^Z(?:STD)?_/.test(code))
    return refuse('Damaged', undefined, `is damaged (${message}); copy it again`, error)
  return error
}
