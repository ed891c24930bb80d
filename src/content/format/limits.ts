const MiB = 2 ** 20

/** Limits of bundles, whose authors are not trusted. Layers have no limit but the disk. */
export interface BundleLimits {
  /** Bytes of index.json; an entry with its annotations takes about 500. */
  readonly indexFileBytes: number
  /** Bytes of an index or a manifest. Registries allow 4 MiB. */
  readonly documentBytes: number
  /** Bytes of an image configuration or Chart.yaml that is read; one that is larger is stored unread. */
  readonly configBytes: number
  /** Descriptors of one index or manifest. */
  readonly descriptors: number
  /** Indexes and manifests of a bundle. */
  readonly documents: number
  /** Blobs of a bundle. */
  readonly blobs: number
  /** Indexes within indexes below index.json. */
  readonly depth: number
  /** Platforms, files and blobs of all entries together. Entries may share them, so it bounds the work and the record. */
  readonly steps: number
}

export const bundleLimits: BundleLimits = {
  indexFileBytes: 16 * MiB,
  documentBytes: 8 * MiB,
  configBytes: 4 * MiB,
  descriptors: 50_000,
  documents: 50_000,
  blobs: 500_000,
  depth: 4,
  steps: 2_000_000,
}
