import type { IndexedMember } from '../../archive/tar-index.ts'

/** A descriptor of index.json, with the fields that it has in its source. */
export interface EntryDescriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** A blob of the bundle and where its content is. */
export interface PlannedBlob {
  readonly digest: string
  readonly sizeBytes: number
  /** Whether it is an index or a manifest; these come first in the archive. */
  readonly isDocument: boolean
  readonly from: Uint8Array | FileRange
  /** The option and file that it comes from, for messages. */
  readonly place: string
}

/** A file, or a part of one. */
export interface FileRange {
  readonly path: string
  /** Without it the blob is the whole file. */
  readonly start?: number
}

/** What one value of an option adds to the bundle. */
export interface Part {
  /** The option with its value: `--chart app.tgz`. */
  readonly place: string
  readonly entries: readonly EntryDescriptor[]
  readonly blobs: readonly PlannedBlob[]
}

/** What an archive of images adds to a bundle. */
export interface ImageArchivePart extends Part {
  /** Names of its images whose manifest is made here, so that no registry has their digest. */
  readonly converted: readonly string[]
}

/** An archive whose members can be read in any order. */
export interface OpenArchive {
  readonly path: string
  readonly members: ReadonlyMap<string, IndexedMember>
}
