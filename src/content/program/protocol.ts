import type { ArchiveLimits } from '../../archive/limits.ts'
import type { NamedBlob } from '../uploads/wanted.ts'
import type { Refused } from '../../program/worker.ts'

/**
 * The protocol between the daemon and the program `content.cjs`. The first line of standard input is the order, JSON; for
 * `unpack` the bytes of the archive follow. Standard output is the finding, JSON.
 */
export type Order = UnpackOrder | NameOrder | ExamineOrder | PublishOrder | VerifyOrder

/**
 * Unpack an OCI image layout into the folder of an upload: `index.json`, and `blobs/<hex>` for each blob. Every blob is
 * hashed; one that the store has is linked and not written. No JSON of the archive is parsed.
 */
export interface UnpackOrder {
  readonly verb: 'unpack'
  /** Folder of the upload, with an empty folder `blobs`. */
  readonly upload: string
  /** Folder of the blobs of the store, `blobs/sha256`. */
  readonly blobs: string
  readonly limits?: Partial<ArchiveLimits>
  /** Space that stays free on the disk. */
  readonly reserveBytes: number
}

export interface Unpacked {
  /** `sha256:…` of index.json, the identity of the bundle. */
  readonly indexDigest: string
  /** Blobs of the archive, without index.json; equal ones count once. */
  readonly blobCount: number
  /** Bytes of these blobs. */
  readonly sizeBytes: number
  /** Bytes of those that the store did not have. */
  readonly writtenBytes: number
}

/** List the blobs that index.json names, or an index or a manifest. */
export interface NameOrder {
  readonly verb: 'name'
  readonly file: string
  /** Name of the document; without it the file is index.json. */
  readonly document?: NamedBlob
}

export interface Named {
  /** A line of JSON for each, a NamedBlob. As one text, which the daemon parses some lines at a time. */
  readonly lines: string
}

/** Read the index and the manifests in the folder of an upload, and write its record, `record.jsonl`. */
export interface ExamineOrder {
  readonly verb: 'examine'
  readonly upload: string
  /** Facts of the whole bundle in the record. */
  readonly bundle: ExaminedBundle
}

/** The part of a record that the daemon knows before the examination. */
export interface ExaminedBundle {
  readonly uid: string
  readonly name: string
  /** Milliseconds since 1970. */
  readonly publishedAt: number
  /** As in the record. */
  readonly publication?: number
  readonly via: 'file' | 'blobs'
  /** Name and size of the uploaded file; empty and 0 for an upload blob by blob. */
  readonly fileName: string
  readonly fileSizeBytes: number
  /** Hex. */
  readonly fileSha256: string
}

export interface Examined {
  /** `sha256:…` of index.json. */
  readonly indexDigest: string
  /** Entries of index.json. */
  readonly entries: number
  /** Blobs, with index.json. */
  readonly blobCount: number
  readonly sizeBytes: number
  /** Architectures of the images that are carried. */
  readonly architectures: readonly string[]
  /** The cluster definition in the bundle. */
  readonly definition?: { readonly digest: string; readonly sizeBytes: number }
}

/**
 * Give the store the blobs of an upload: those that `record.jsonl` names and the store does not have. The upload keeps
 * its own names of them. It may be killed at any point and run again.
 */
export interface PublishOrder {
  readonly verb: 'publish'
  readonly upload: string
  /** Folder of the blobs of the store, `blobs/sha256`. */
  readonly blobs: string
}

export interface Published {
  /** Blobs that the store did not have. */
  readonly movedCount: number
}

/** Read blobs and compare their content with their names. */
export interface VerifyOrder {
  readonly verb: 'verify'
  /** The folder with the blobs, named by their digests in hex. */
  readonly blobs: string
  /** `sha256:…` of each. */
  readonly digests: readonly string[]
  /** The rate of reading; as fast as possible without it. */
  readonly bytesPerSecond?: number
}

export interface Verified {
  /** `sha256:…` of those whose content differs or cannot be read, or that are missing. */
  readonly damaged: readonly string[]
  /** Bytes read. */
  readonly sizeBytes: number
}

export type Finding =
  | { readonly unpacked: Unpacked }
  | { readonly named: Named }
  | { readonly examined: Examined }
  | { readonly published: Published }
  | { readonly verified: Verified }
  | { readonly refused: Refused }
