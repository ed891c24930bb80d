import { closeSync, linkSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf } from '../format/descriptor.ts'
import { describeEntries } from '../format/entry.ts'
import { documentTooLarge, type Document } from '../format/document.ts'
import { bundleLimits, refuseBundle } from '../format/refusal.ts'
import { formatRecord, type RecordedBlob, type RecordedDocument } from '../format/record.ts'
import { createWalk, requireWhole, sizeDiffers, type Need, type Walk } from '../format/walk.ts'
import type { Examined, ExamineOrder } from './protocol.ts'

/**
 * Reads the index and the manifests in the folder of an upload, checks that the bundle is whole and every blob as large as
 * its descriptors say, and writes its record, `record.jsonl`. Contents were compared with the digests before. The bytes of
 * index.json become a blob too. Nothing is synced: the daemon does that once for the whole bundle.
 * @throws AppError why the bundle is refused
 */
export function examine({ upload, bundle }: ExamineOrder): Examined {
  const blobs = createUploadedBlobs(join(upload, 'blobs'))
  const indexFile = readIndexFile(join(upload, 'index.json'))
  const indexDigest = digestOf(indexFile)
  blobs.link(indexDigest, join(upload, 'index.json'))

  const walk = createWalk()
  addDocuments(walk, indexFile, blobs)
  for (const need of walk.needs.values()) blobs.isHeld(need)
  const isHeld = (digest: string) => {
    const need = walk.needs.get(digest)
    return need !== undefined && blobs.isHeld(need)
  }
  requireWhole(walk, isHeld)
  const { entries, architectures, definition } = describeEntries({
    walk,
    isHeld,
    readConfig: ({ digest, sizeBytes }) =>
      sizeBytes <= bundleLimits.configBytes && isHeld(digest) ? blobs.read(digest) : undefined,
  })

  const recorded: RecordedBlob[] = [[indexDigest, indexFile.length]]
  for (const { digest, sizeBytes, descriptor } of walk.needs.values()) {
    if (!isHeld(digest)) continue
    const document = walk.documents.get(digest)
    recorded.push(
      document ? [digest, sizeBytes, describeDocument(descriptor.mediaType, document)] : [digest, sizeBytes],
    )
  }
  const lackingBlobs = walk.needs.size + 1 - recorded.length
  const found = {
    indexDigest,
    blobCount: recorded.length,
    sizeBytes: recorded.reduce((sum, [, bytes]) => sum + bytes, 0),
    ...(definition ? { definition } : {}),
  }
  const facts = { ...bundle, ...found, ...(lackingBlobs > 0 ? { lackingBlobs } : {}) }
  writePieces(join(upload, 'record.jsonl'), formatRecord(facts, entries, recorded))
  return { ...found, entries: entries.length, architectures }
}

function describeDocument(mediaType: string, document: Document): RecordedDocument {
  const { subject, annotations } = document
  if (subject === undefined) return { mediaType }
  const artifactType =
    document.artifactType ?? (document.kind === 'manifest' ? document.config.mediaType : undefined)
  return {
    mediaType,
    referrer: {
      subject,
      ...(artifactType === undefined ? {} : { artifactType }),
      ...(annotations.size === 0 ? {} : { annotations: Object.fromEntries(annotations) }),
    },
  }
}

function readIndexFile(file: string): Buffer {
  const { size } = statSync(file)
  if (size > bundleLimits.indexFileBytes)
    throw refuseBundle(
      'IndexTooLarge',
      'index.json',
      `has ${size} bytes; ${bundleLimits.indexFileBytes} are allowed; split the bundle`,
    )
  return readFileSync(file)
}

/** Adds all documents that are here, those nearer to index.json first. */
function addDocuments(walk: Walk, indexFile: Buffer, blobs: UploadedBlobs): void {
  const waiting = [...walk.addIndexFile(indexFile)]
  for (const need of waiting) {
    if (need.kind !== 'document' || !blobs.isHeld(need)) continue
    if (need.sizeBytes > bundleLimits.documentBytes)
      throw documentTooLarge(need.descriptor, need.sizeBytes, bundleLimits)
    waiting.push(...walk.addDocument(need.digest, blobs.read(need.digest)))
  }
}

interface UploadedBlobs {
  /** @throws AppError if it is here in another size */
  isHeld(need: Need): boolean
  read(digest: string): Buffer
  /** Makes a file a blob, unless it is one. */
  link(digest: string, file: string): void
}

function createUploadedBlobs(folder: string): UploadedBlobs {
  const held = new Map<string, boolean>()
  const fileOf = (digest: string) => join(folder, digest.slice('sha256:'.length))
  return {
    read: (digest) => readFileSync(fileOf(digest)),
    isHeld(need) {
      const known = held.get(need.digest)
      if (known !== undefined) return known
      const stats = statSync(fileOf(need.digest), { throwIfNoEntry: false })
      if (stats !== undefined && stats.size !== need.sizeBytes) throw sizeDiffers(need, stats.size)
      held.set(need.digest, stats !== undefined)
      return stats !== undefined
    },
    link(digest, file) {
      try {
        linkSync(file, fileOf(digest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    },
  }
}

function writePieces(file: string, pieces: Iterable<string>): void {
  const descriptor = openSync(file, 'w', 0o600)
  try {
    for (const piece of pieces) {
      const bytes = Buffer.from(piece)
      for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written)
    }
  } finally {
    closeSync(descriptor)
  }
}
