import { bundleArchiveLimits, type ArchiveLimits } from '../../archive/limits.ts'

const MiB = 2 ** 20

/** Archives of images have links in the form of older tools, and files beside every layer. */
export const imageArchiveLimits: ArchiveLimits = {
  ...bundleArchiveLimits,
  noun: 'archive of images',
  areLinksAllowed: true,
  members: 2_400_000,
}

/** Charts are small; Helm itself reads at most 100 MiB. */
export const chartLimits: ArchiveLimits = {
  ...bundleArchiveLimits,
  noun: 'chart',
  isPlainAllowed: false,
  members: 50_000,
  memberBytes: 100 * MiB,
  unpackedBytes: 200 * MiB,
}
