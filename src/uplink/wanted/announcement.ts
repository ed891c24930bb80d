/** What the platform says in its reply to a heartbeat of the cluster that it wants on this host. */
export interface Announcement {
  /** Rises with each change of what is wanted. */
  readonly number: number
  /** `<number>-<first 32 hex digits of the SHA-256 of what is downloaded>`, without quotes. */
  readonly etag: string
  /** Uid of the cluster, where the platform says it. */
  readonly uid: string | undefined
  /** Whether the cluster is to be deleted, where the platform says it. */
  readonly isDeletion?: true
}

/** Header of the reply. */
export const wantedHeader = 'edgehost-wanted'

const longest = 512
// Members of a dictionary, RFC 9651, 3.2: only those with an integer or a text, which are all that a platform sends.
const member = /([a-z*][a-z0-9_.*-]*)=(?:(\d{1,15})|"([\x20\x21\x23-\x5b\x5d-\x7e]*)")(?:\s*,\s*|$)/y
const etagForm = /^(\d{1,15})-([0-9a-f]{32})$/
const uidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** @returns undefined where nothing is wanted, and for a header that no platform sends */
export function parseAnnouncement(header: string | undefined): Announcement | undefined {
  if (header === undefined || header.length > longest) return undefined
  const found = new Map<string, number | string>()
  member.lastIndex = 0
  while (member.lastIndex < header.length) {
    const [, name = '', digits, text = ''] = member.exec(header) ?? []
    if (name === '') return undefined
    found.set(name, digits === undefined ? text : Number(digits))
  }
  const [number, etag, uid] = ['number', 'etag', 'uid'].map((name) => found.get(name))
  if (typeof number !== 'number' || number < 1 || typeof etag !== 'string') return undefined
  if (Number(etagForm.exec(etag)?.[1]) !== number) return undefined
  return {
    ...{ number, etag, uid: typeof uid === 'string' && uidForm.test(uid) ? uid : undefined },
    ...(found.get('deletion') === 1 ? { isDeletion: true } : {}),
  }
}

/** The beginning of the SHA-256, hex, that the ETag has. */
export const sumIn = (etag: string): string => etagForm.exec(etag)?.[2] ?? ''
