import { withDefaults } from '../../archive/limits.ts'
import { bundleLimits } from '../../content/format/limits.ts'

/** Limits for archives of images that are read on a workstation: names and headers are bounded, contents by the disk. */
export const imageArchiveLimits = withDefaults({
  // A blob each, its folders, and what old archives have beside every layer.
  members: 4 * bundleLimits.blobs,
  memberBytes: Number.MAX_SAFE_INTEGER,
  unpackedBytes: Number.MAX_SAFE_INTEGER,
  ratio: Infinity,
  frames: 1_000_000,
  zstdWindowLog: 27,
})
