const MiB = 2 ** 20

/** What an archive may cost the host that reads it. Its author may not be trusted. */
export interface ArchiveLimits {
  /** Files and folders, folders that are only implied by a name included. */
  readonly members: number
  /** Bytes of one member. */
  readonly memberBytes: number
  /** Bytes of all of it, unpacked, the frames of tar included. */
  readonly unpackedBytes: number
  /** Unpacked bytes for each compressed one. Text reaches 10 to 100, a bomb 1,000 and far more. */
  readonly ratio: number
  /** The ratio counts from here: a small definition may repeat itself as it likes. */
  readonly ratioFreeBytes: number
  /** Bytes of a whole name. */
  readonly nameBytes: number
  /** Bytes between two slashes; file systems take 255. */
  readonly segmentBytes: number
  /** Folders in folders. */
  readonly depth: number
  /** Bytes of the records that tar puts before a member, its long name among them. */
  readonly recordBytes: number
  /** Frames of Zstandard, one after the other in one file; each costs a start. */
  readonly frames: number
  /** What Zstandard may keep of what it has unpacked, as a power of two: 24 is 16 MiB, enough for level 19. */
  readonly zstdWindowLog: number
  /** Bytes of a file that is read whole: JSON, YAML, the parts of a pack that are text. */
  readonly textBytes: number
  /** Bytes of all such files together. */
  readonly allTextBytes: number
  /** Bytes of definition.yaml before its sums. */
  readonly headBytes: number
}

export const defaultLimits: ArchiveLimits = {
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

/** The limits with some of them replaced. */
export const withDefaults = (given: Partial<ArchiveLimits> = {}): ArchiveLimits => ({
  ...defaultLimits,
  ...given,
})
