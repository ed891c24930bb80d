import { plural } from '../ctl/text.ts'

/** How much is in a definition archive. */
export interface Contents {
  readonly profiles: number
  readonly packs: number
  readonly members: number
  /** Bytes of all members, unpacked. */
  readonly bytes: number
}

/** `1 profile, 3 packs, 6 files of 1.2 MB`. */
export const describeContents = ({ profiles, packs, members, bytes }: Contents): string =>
  `${plural(profiles, 'profile')}, ${plural(packs, 'pack')}, ${plural(members, 'file')} of ${megabytes(bytes)}`

/** Decimal megabytes or kilobytes, `12.3 MB`. */
export const megabytes = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
