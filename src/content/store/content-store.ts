/** A published bundle. */
export interface Bundle {
  readonly uid: string
  readonly name: string
  /** Its identity: `sha256:` and the hex of the digest of its index.json. */
  readonly indexDigest: string
  /** Milliseconds since 1970, UTC. */
  readonly publishedAt: number
  readonly fileName: string
  /** Of an uploaded file: its size and its SHA-256, hex. */
  readonly fileSizeBytes?: number | undefined
  readonly fileSha256?: string | undefined
  readonly via: UploadKind
  /** Of its blobs, each counted once. */
  readonly sizeBytes: number
  readonly blobCount: number
  /** The archive of the cluster definition in it. */
  readonly definition?: BundledDefinition | undefined
}

export interface BundledDefinition {
  readonly digest: string
  readonly sizeBytes: number
}

/** `file`: an archive of a bundle that is unpacked while it streams; `blobs`: blob by blob, resumable. */
export type UploadKind = 'file' | 'blobs'

/** The folder of an upload: `uploads/<uid>` with the empty folders `blobs` and `parts`. */
export interface StagedUpload {
  readonly uid: string
  readonly folder: string
}

/** The fields of a bundle that the daemon knows before `examine` writes them into the record. */
export type PublishOrder = Pick<Bundle, 'uid' | 'indexDigest' | 'name' | 'publishedAt'> & {
  /** What `examine` found. */
  readonly definition?: BundledDefinition | undefined
  /** Aborted when the upload is given up; not looked at any more once the record is renamed. */
  readonly signal?: AbortSignal | undefined
}

export interface Published {
  readonly bundle: Bundle
  /** False for a bundle that was published before: only its damaged blobs are repaired. */
  readonly isNew: boolean
}

/** The room on the file system of the content. */
export interface ContentSpace {
  /** Bytes that uploads leave free, by `content.reserve`. */
  reserveBytes(): Promise<number>
  /** What an upload may still use: free bytes without the reserve, and without what running uploads have reserved. May be negative. */
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
  /** The folders of uploads on the disk, after `open`; those of a stopped daemon too. */
  listStaged(): Promise<StagedUpload[]>
  removeStaged(upload: StagedUpload): Promise<void>
  findBundleByIndex(indexDigest: string): Bundle | undefined
  /** Whether no blob of the bundle is damaged. */
  isWhole(bundle: Bundle): boolean
  /** Whether a published bundle names the blob and it is not damaged. @param digest `sha256:<hex>` */
  hasBlob(digest: string): boolean
  /** Links blobs that the store has into `blobs` of the upload, which keeps them when their bundle is deleted. @returns the digests that were linked */
  linkBlobs(upload: StagedUpload, digests: readonly string[]): Promise<string[]>
  readonly space: ContentSpace
  /**
   * Publishes an examined upload (`record.jsonl`, `blobs`) in one step, and removes its folder. If a bundle with the same index is
   * published, its damaged blobs are repaired instead. After an error the upload is as before, and may be published again.
   * @throws AppError StorageFull, ContentUnavailable, what the program refuses, and what the definition of the bundle is refused for
   */
  publish(upload: StagedUpload, order: PublishOrder): Promise<Published>
}
