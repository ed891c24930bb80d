import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { decompress } from '../../archive/compression.ts'
import { bundleArchiveLimits as limits } from '../../archive/limits.ts'
import { createMemberNames } from '../../archive/member-names.ts'
import { refuse } from '../../archive/refusal.ts'
import { readTar } from '../../archive/tar-reader.ts'
import { bundleLimits } from '../../content/format/refusal.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { AppError } from '../../errors/app-error.ts'
import type { FoundBlob, LayoutSource } from './layout.ts'
import { describePlace, layoutFolderOf } from './layout-place.ts'

/** A bundle file that was read whole, with every blob compared with its digest. */
export interface ScannedBundle extends LayoutSource {
  /** All blobs by digest, also those that nothing names. */
  readonly blobs: ReadonlyMap<string, FoundBlob>
  /** Digests of those whose content differs. */
  readonly damaged: readonly string[]
}

export interface ScanOptions {
  readonly file: string
  /** An empty folder for what looks like JSON: the documents among it are found later. */
  readonly temporary: string
  /** Called with the number of bytes of the file that were read so far. */
  readonly onRead: (bytes: number) => void
}

const blobName = /^blobs\/sha256\/([0-9a-f]{64})$/

/**
 * Reads a bundle from its beginning to its end, with constant memory.
 * @throws AppError if the archive is damaged or breaks a rule; Failure if it is an archive of another kind
 */
export async function scanBundle({ file, temporary, onRead }: ScanOptions): Promise<ScannedBundle> {
  const files = new Map<string, Buffer>()
  const blobs = new Map<string, FoundBlob>()
  const damaged: string[] = []
  let isOldArchive = false
  let folder: string | undefined
  const names = createMemberNames(limits)
  const source = createReadStream(file, { highWaterMark: 1_048_576 })
  const bytes = decompress(source, limits, ({ compressedBytes }) => onRead(compressedBytes))
  for await (const { name, kind, sizeBytes, content } of explained(readTar(bytes, limits))) {
    const path = names.admit(name, kind)
    if (path === 'manifest.json' || path === 'repositories') isOldArchive = true
    if (kind !== 'file') continue
    folder ??= layoutFolderOf(path)
    if (path === 'oci-layout' || path === 'index.json') {
      if (sizeBytes > bundleLimits.indexFileBytes)
        throw refuse(
          'MemberTooLarge',
          path,
          `has ${sizeBytes} bytes; ${bundleLimits.indexFileBytes} are allowed`,
        )
      const parts: Buffer[] = []
      for await (const part of content) parts.push(part)
      files.set(path, Buffer.concat(parts))
      continue
    }
    const hex = blobName.exec(path)?.[1]
    if (hex === undefined) continue
    const kept = join(temporary, hex)
    const { sum, isKept } = await readBlob(content, sizeBytes, kept)
    const digest = `sha256:${hex}`
    if (sum !== hex) damaged.push(digest)
    blobs.set(digest, isKept ? { sizeBytes, from: { path: kept } } : { sizeBytes })
  }
  return {
    blobs,
    damaged,
    find: async (digest) => blobs.get(digest),
    async read(name) {
      const bytes = files.get(name)
      if (bytes) return bytes
      if (isOldArchive && !files.has('oci-layout')) throw notALayout()
      throw new Failure(
        'failed',
        `${file} is not a bundle: ${name} is missing ${folder === undefined ? 'in it' : describePlace(folder)}`,
      )
    },
  }

  /** Old archives of images have links, of podman and skopeo before everything that says what they are. */
  async function* explained<T>(members: AsyncGenerator<T>): AsyncGenerator<T> {
    try {
      yield* members
    } catch (error) {
      const isLink = error instanceof AppError && error.details?.reason === 'MemberKind'
      if (isLink && !files.has('oci-layout') && blobs.size === 0) throw notALayout(error)
      throw error
    }
  }

  function notALayout(cause?: unknown): Failure {
    return new Failure(
      'failed',
      `${file} is an archive of docker save or podman save, not a bundle; make one of it: edgehostctl content build --image-archive ${shellWord(file)} --output FILE`,
      { cause },
    )
  }
}

/** Hashes a blob, and keeps it if it may be a document or a configuration. */
async function readBlob(content: AsyncIterable<Buffer>, sizeBytes: number, path: string) {
  const hash = createHash('sha256')
  let file: number | undefined
  let isFirst = true
  try {
    for await (const part of content) {
      if (isFirst && sizeBytes <= bundleLimits.documentBytes && mayBeJson(part))
        file = openSync(path, 'wx', 0o600)
      isFirst = false
      hash.update(part)
      if (file !== undefined) for (let at = 0; at < part.length;) at += writeSync(file, part, at)
    }
  } finally {
    if (file !== undefined) closeSync(file)
  }
  return { sum: hash.digest('hex'), isKept: file !== undefined }
}

/** Whether JSON begins with this byte: white space or an object. */
const mayBeJson = (part: Buffer): boolean => [0x7b, 0x20, 0x09, 0x0a, 0x0d].includes(part[0] ?? 0)
