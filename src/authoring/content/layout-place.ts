import { shellWord } from '../../base/printable.ts'

const marker = '/oci-layout'

/** The folder of an archive that has a layout, if it is not the top; undefined for other members than `oci-layout`. */
export const layoutFolderOf = (path: string): string | undefined =>
  path.endsWith(marker) ? path.slice(0, -marker.length) : undefined

/** Follows `is missing`. */
export const describePlace = (folder: string): string =>
  `at its top, the layout is in the folder ${folder} of the archive; pack what is in that folder: tar -C ${shellWord(folder)} -cf FILE oci-layout index.json blobs`
