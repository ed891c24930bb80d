import { createHash, type Hash } from 'node:crypto'
import { closeSync, createWriteStream, openSync, readSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { tarEnd, tarPadding } from '../../system/ustar.ts'
import type { BuildPlan, PlannedMember } from './build-plan.ts'
import { definitionFile, formatDefinitionFile } from './definition-file.ts'
import { formatVersion } from './format.ts'
import { memberHeader } from './tar-member.ts'

export interface BuildOptions {
  readonly plan: BuildPlan
  /** Ends in .tgz, .tar.gz or .tar.zst. */
  readonly file: string
  readonly name?: string | undefined
  readonly version?: string | undefined
  readonly description?: string | undefined
  /** Bytes that are packed, of how many. */
  readonly onProgress?: (done: number, total: number) => void
}

/** An archive that was made. */
export interface Built {
  readonly file: string
  readonly name: string
  readonly version: string
  readonly sizeBytes: number
  /** Of the whole file, hex. */
  readonly sha256: string
  readonly memberCount: number
  /** Of all members, unpacked. */
  readonly contentBytes: number
}

// The compressors get blocks of one size, so that what they make of them depends on the content alone.
const blockBytes = 262_144
const aheadBytes = 4 * blockBytes
const zstdLevel = 3

/** Whether a file's name says how to compress it. */
export const isArchiveName = (file: string): boolean => /\.(?:tgz|tar\.gz|tar\.zst)$/.test(file)

/**
 * Writes an archive beside its place and moves it there when it is whole and on the disk. The same files give the
 * same bytes with the same version of this program: sorted names, one owner, mode and time. Files are read once, and
 * hashed while they are packed; so definition.yaml, which has their sums, comes last.
 * @throws Error when a file changes meanwhile; the system's errors as they are
 */
export async function buildArchive({ plan, file, onProgress, ...title }: BuildOptions): Promise<Built> {
  const name = title.name ?? plan.title.name
  const version = title.version ?? plan.title.version
  const contentBytes = plan.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const sums = new Map<string, string>()
  let done = 0

  async function* bytes(): AsyncGenerator<Buffer> {
    const blocks = createBlocks()
    for (const member of plan.members) {
      const hash = createHash('sha256')
      yield* blocks.add(memberHeader(member.name, member.sizeBytes))
      for (const chunk of contentOf(member, hash)) {
        done += chunk.length
        for (const block of blocks.add(chunk)) {
          yield block
          onProgress?.(done, contentBytes)
          // The compressor works in a thread, and is handed its next block only when we let go.
          await nextTurn()
        }
      }
      yield* blocks.add(tarPadding(member.sizeBytes))
      sums.set(member.name, hash.digest('hex'))
    }
    const description = title.description ?? plan.title.description
    const head = Buffer.from(
      formatDefinitionFile({ formatVersion, name, version, description, profiles: [...plan.profiles], sums }),
    )
    for (const part of [memberHeader(definitionFile, head.length), head, tarPadding(head.length), tarEnd()])
      yield* blocks.add(part)
    yield blocks.rest()
  }

  const whole = createHash('sha256')
  let sizeBytes = 0
  async function* counted(compressed: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of compressed as AsyncIterable<Buffer>) {
      whole.update(chunk)
      sizeBytes += chunk.length
      yield chunk
    }
  }

  const partial = `${file}.part`
  try {
    await pipeline(bytes, compressor(file), counted, createWriteStream(partial, { flush: true }))
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  const memberCount = plan.members.length + 1
  return { file, name, version, sizeBytes, sha256: whole.digest('hex'), memberCount, contentBytes }
}

function compressor(file: string) {
  const shared = { chunkSize: blockBytes, writableHighWaterMark: aheadBytes }
  if (!file.endsWith('.zst')) return createGzip(shared)
  const params = { [constants.ZSTD_c_compressionLevel]: zstdLevel, [constants.ZSTD_c_checksumFlag]: 1 }
  return createZstdCompress({ ...shared, params })
}

/** Cuts what comes into blocks of one size. */
function createBlocks() {
  let block = Buffer.allocUnsafe(blockBytes)
  let filled = 0
  return {
    *add(chunk: Buffer): Generator<Buffer> {
      for (let at = 0; at < chunk.length;) {
        const taken = chunk.copy(block, filled, at)
        filled += taken
        at += taken
        if (filled < blockBytes) return
        yield block
        block = Buffer.allocUnsafe(blockBytes)
        filled = 0
      }
    },
    rest: () => block.subarray(0, filled),
  }
}

function* contentOf({ name, from, sizeBytes }: PlannedMember, hash: Hash): Generator<Buffer> {
  if (typeof from !== 'string') {
    hash.update(from)
    yield from
    return
  }
  const file = openSync(from, 'r')
  try {
    const buffer = Buffer.allocUnsafe(Math.min(blockBytes, sizeBytes + 1))
    let total = 0
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer)) {
      total += read
      if (total > sizeBytes) break
      const chunk = buffer.subarray(0, read)
      hash.update(chunk)
      yield chunk
    }
    if (total !== sizeBytes) throw new Error(`${from} (${name}) changed while it was packed; build it again`)
  } finally {
    closeSync(file)
  }
}
