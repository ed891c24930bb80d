import type { Registration } from './link-store.ts'

/** What a reply to a registration says of this host. */
export interface PlatformRecord extends Pick<Registration, 'edgeHostUid' | 'projectUid' | 'tenantUid'> {
  /** The name of this host there. */
  readonly name: string
  /** That of its project; empty where the platform does not say it. */
  readonly projectName: string
}

// What a reply says is stored, and is a part of later calls: nothing is taken that no platform says.
const uid = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Characters of a name in a reply of the platform. */
export const longestName = 253

type Unknown<Keys extends string> = Readonly<Partial<Record<Keys, unknown>>>

const isUid = (value: unknown): value is string => typeof value === 'string' && uid.test(value)

const nameIn = (value: unknown) => (typeof value === 'string' ? value.slice(0, longestName) : '')

/**
 * Reads the reply to a registration, or to a dry run, where the uid may be empty.
 * @returns undefined for what is no record
 */
export function readRecord(body: unknown): PlatformRecord | undefined {
  const { metadata, aclmeta, projectName } = {
    ...(body as Unknown<'metadata' | 'aclmeta' | 'projectName'> | null | undefined),
  }
  const { uid: edgeHostUid, name } = { ...(metadata as Unknown<'uid' | 'name'> | null | undefined) }
  const { projectUid, tenantUid } = { ...(aclmeta as Unknown<'projectUid' | 'tenantUid'> | null | undefined) }
  if (!(edgeHostUid === '' || isUid(edgeHostUid)) || !(projectUid === '' || isUid(projectUid)))
    return undefined
  return {
    edgeHostUid,
    projectUid,
    name: nameIn(name),
    projectName: nameIn(projectName),
    ...(isUid(tenantUid) ? { tenantUid } : {}),
  }
}
