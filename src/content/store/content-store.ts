import type { BundleFacts } from '../format/record.ts'
import type { Examined, ExaminedBundle } from '../program/protocol.ts'

/** A published bundle: the facts of its record. */
export type Bundle = BundleFacts

/** `file`: an archive of a bundle that is unpacked while it streams; `blobs`: blob by blob, resumable. */
export type UploadKind = Bundle['via']

/** The folder of an upload: `uploads/<uid>` with the empty folders `blobs` and `parts`. */
export interface StagedUpload {
  readonly uid: string
  readonly folder: string
}

/** Order of a publication. */
export interface PublishOrder {
  readonly indexDigest: string
  /** Facts for the record of a new bundle, whose uid is the uid of the upload. */
  readonly bundle: ExaminedBundle
  /**
   * Examines the upload, and writes `record.jsonl` with these facts.
   * @throws AppError the refusal of the bundle
   */
  examine(bundle: ExaminedBundle): Promise<Pick<Examined, 'definition' | 'blobCount'>>
  /** Aborted when the upload is given up; ignored once the record is renamed. */
  readonly signal?: AbortSignal | undefined
}

export interface Published {
  readonly bundle: Bundle
  /** False if a bundle with the same index was published before: it gets the blobs that it lacks. */
  readonly isNew: boolean
  /** Blobs that a bundle which was published before has got. */
  readonly addedBlobs: number
  /** Blobs of the bundle that are still damaged. */
  readonly damagedBlobs: number
}

/** The room on the file system of the content. */
export interface ContentSpace {
  /** Bytes that uploads leave free, by `content.reserve`. */
  reserveBytes(): Promise<number>
  /** Bytes that an upload may still use: free ones without the reserve and the reservations of running uploads. May be negative. */
  freeBytes(): Promise<number>
  /**
   * Reserves bytes for a running upload; a second call replaces the first.
   * @throws AppError StorageFull with the missing bytes
   */
  reserve(uploadUid: string, bytes: number): Promise<void>
  release(uploadUid: string): void
}

/**
 * The content of this host on the disk: an OCI image layout with one record file a bundle. The files are the truth; SQLite is an
 * index of them. Every verb that returns a promise opens the store when it is not open yet; the others need `open` before them.
 */
export interface ContentStore {
  /** `content.directory`. */
  readonly folder: string
  /** `blobs/sha256` in it. */
  readonly blobs: string
  /**
   * Opens the store: makes its folders, undoes a publication that a killed daemon left, and brings the index up to date with the
   * records. Callers share one opening; after a failure the next call tries again.
   * @throws AppError ContentUnavailable
   */
  open(): Promise<void>
  /** Makes the folder of an upload. @throws AppError StorageFull */
  stage(): Promise<StagedUpload>
  /** The folders of uploads on the disk, after `open`; also of a stopped daemon. */
  listStaged(): Promise<StagedUpload[]>
  removeStaged(upload: StagedUpload): Promise<void>
  findBundle(uid: string): Bundle | undefined
  findBundleByIndex(indexDigest: string): Bundle | undefined
  /** Whether no blob of the bundle is damaged. */
  isWhole(bundle: Bundle): boolean
  /** Reads the blobs of a bundle again, and sets damaged ones aside. @throws the reason of the signal, ContentUnavailable */
  rereadBundle(bundle: Bundle, signal: AbortSignal): Promise<void>
  /** Whether a published bundle names the blob and it is not damaged. @param digest `sha256:<hex>` */
  hasBlob(digest: string): boolean
  /** Links blobs that the store has into `blobs` of the upload, which keeps them when their bundle is deleted. @returns the digests that were linked */
  linkBlobs(upload: StagedUpload, digests: readonly string[]): Promise<string[]>
  /** Removes from an upload linked blobs that were found damaged since. @returns the digests that are to be sent */
  dropDamaged(upload: StagedUpload): Promise<string[]>
  readonly space: ContentSpace
  /**
   * Examines an upload and publishes it in one step, and removes its folder. If a bundle with the same index is published, its
   * damaged blobs are repaired, also where the damage was not known, and its record is replaced by one of all blobs that the two have,
   * if the upload has more. After an error the upload is as before, and may be published again.
   * @throws AppError StorageFull, ContentUnavailable, a refusal of the program, and the refusal of the definition of the bundle
   */
  publish(upload: StagedUpload, order: PublishOrder): Promise<Published>
}
