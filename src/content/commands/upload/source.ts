import type { Readable } from 'node:stream'

/** A blob of a bundle that can be read. */
export interface SourceBlob {
  /** `sha256:…` by its name; the host compares. */
  readonly digest: string
  readonly sizeBytes: number
  /** Reads it from an offset. */
  open(offset: number): Readable
}

/** A bundle on this machine. */
export interface BundleSource {
  /** Bytes of index.json. */
  readonly index: Buffer
  /** What the bundle is called if the command line does not say it. */
  readonly name: string
  /** Whether it may have a blob; a compressed file is known only as far as it was read. */
  mayHave(digest: string): boolean
  /**
   * The wanted blobs that it has. Of a source that is read `inOrder`, a blob can only be opened once, and has to be read, or left,
   * before the next one is asked for.
   */
  blobs(wanted: ReadonlySet<string>): AsyncIterable<SourceBlob>
  readonly isInOrder: boolean
  close(): Promise<void>
}
