import { bundleArchiveLimits, type ArchiveLimits } from '../../archive/limits.ts'

/** Archives of images have links in the form of older tools, and files beside every layer. */
export const imageArchiveLimits: ArchiveLimits = {
  ...bundleArchiveLimits,
  noun: 'archive of images',
  areLinksAllowed: true,
  members: 2_400_000,
}
