const MiB = 2 ** 20

/** Limits of one use of archives, which protect the host from an archive whose author is not trusted. */
export interface ArchiveLimits {
  /** Noun for the archive in refusals. */
  readonly noun: 'definition' | 'bundle' | 'chart' | 'archive of images' | 'pack'
  /** Whether the archive may be a tar without compression. */
  readonly isPlainAllowed: boolean
  /** Whether it may have links; a reader that allows them resolves them itself. */
  readonly areLinksAllowed: boolean
  /** Files and folders, including folders that only a name implies. */
  readonly members: number
  /** Bytes of one member. From 8 GiB on, sizes that only GNU tar and pax can write are accepted. */
  readonly memberBytes: number
  /** Bytes of the whole unpacked archive, including the tar headers. */
  readonly unpackedBytes: number
  /** Unpacked bytes per compressed byte. Text reaches 10 to 100, a bomb 1,000 and far more. */
  readonly ratio: number
  /** The ratio is checked only above this size: a small definition may be as repetitive as it likes. */
  readonly ratioFreeBytes: number
  /** Bytes of a full name. */
  readonly nameBytes: number
  /** Bytes of one path segment; file systems allow 255. */
  readonly segmentBytes: number
  /** Nesting depth of folders. */
  readonly depth: number
  /** Bytes of the records that tar puts before a member, including its long name. */
  readonly recordBytes: number
  /** Zstandard frames in one file, skippable ones included; each one costs a turn of the decompressor. */
  readonly frames: number
  /** Window of Zstandard, as a power of two: 24 is 16 MiB, enough for level 19. */
  readonly zstdWindowLog: number
  /** Bytes of a file that is read as a whole: JSON, YAML, the text files of a pack. */
  readonly textBytes: number
  /** Bytes of all such files together. */
  readonly allTextBytes: number
  /** Bytes of definition.yaml up to its checksums. */
  readonly headBytes: number
}

/** The limits of a definition. */
export const defaultLimits: ArchiveLimits = {
  noun: 'definition',
  isPlainAllowed: false,
  areLinksAllowed: false,
  members: 50_000,
  memberBytes: 2_048 * MiB,
  unpackedBytes: 8_192 * MiB,
  ratio: 250,
  ratioFreeBytes: 32 * MiB,
  nameBytes: 1_000,
  segmentBytes: 255,
  depth: 32,
  recordBytes: 16_384,
  frames: 10_000,
  zstdWindowLog: 24,
  textBytes: 16 * MiB,
  allTextBytes: 256 * MiB,
  headBytes: 65_536,
}

/**
 * The limits of a bundle. The disk bounds its unpacked size. Disk images in it may be full of zeros, which gzip
 * reduces to a thousandth.
 */
export const bundleArchiveLimits: ArchiveLimits = {
  ...defaultLimits,
  noun: 'bundle',
  isPlainAllowed: true,
  members: 600_000,
  memberBytes: 2 ** 40,
  unpackedBytes: 2 ** 40,
  ratio: 2_000,
  ratioFreeBytes: 1_024 * MiB,
  // edgehostctl writes one for each 2 MiB.
  frames: 1_000_000,
  zstdWindowLog: 27,
}

/** The limits of a pack alone, as of the definition of which it becomes a part. A plain tar, the default of tar(1), is accepted. */
export const packArchiveLimits: ArchiveLimits = { ...defaultLimits, noun: 'pack', isPlainAllowed: true }

/** The limits with some of them replaced. */
export const withDefaults = (given: Partial<ArchiveLimits> = {}): ArchiveLimits => ({
  ...defaultLimits,
  ...given,
})
