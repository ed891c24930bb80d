import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, sweepTemporary, syncFolder } from '../system/files.ts'
import { readRegularFile } from '../system/regular-file.ts'
import type { Logger } from '../system/log.ts'
import { platformFolder } from './host-key.ts'

/** The registration of this host. */
export interface Registration {
  /** Uid of this host on the platform. */
  readonly edgeHostUid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  /** The id under which this host was registered. */
  readonly hostId: string
  /** Of the last login; 0 before the first one. */
  readonly generation: number
  /** The tenant, which tells one platform from another; undefined where a host was registered by a version that did not keep it. */
  readonly tenantUid?: string
  /** Whether the platform said that it has removed this host. */
  readonly isRemoved: boolean
  /** The key of the certificate that is pinned. */
  readonly pinned?: PinnedKey
  /** Generations of this host under other uids, as on platforms that it was connected to before; the newest last. */
  readonly former: readonly FormerGeneration[]
}

/** The key that a certificate with a fingerprint had; see `Trust` of `outgoing/connection.ts`. */
export interface PinnedKey {
  readonly fingerprint: string
  readonly key: string
}

/** Sent by a host that comes back: with an older generation it would look like a second one. */
export type FormerGeneration = Pick<Registration, 'edgeHostUid' | 'generation'>

/**
 * The registration, in a file beside the key rather than in the database: a host that lost its generation with a damaged database would
 * look like a second one. Every write is on the disk when its promise is fulfilled, and throws the system's error.
 */
export interface LinkStore {
  current(): Registration | undefined
  /** Keeps the generation of the record on the platform, also where this host had another one meanwhile. */
  putRegistration(
    registration: Pick<Registration, 'edgeHostUid' | 'projectUid' | 'hostId' | 'tenantUid'>,
  ): Promise<void>
  /** Of a login: the platform has this host. */
  putGeneration(generation: number): Promise<void>
  markRemoved(): Promise<void>
  /** The key of the certificate with this fingerprint, where it was seen. */
  pinnedKey(fingerprint: string): string | undefined
  /** Is on the disk with the next write, at the login. */
  learnKey(pinned: PinnedKey): void
}

const name = 'registration.json'
const mostBytes = 4_096
const mostFormer = 8

/**
 * Opens the store. A file that cannot be read, or is not as it was written, counts as none: the platform gives the uid back for the key,
 * but takes the generation 0 for a second host, until an administrator accepts it.
 */
export async function openLinkStore(stateDirectory: string, log: Logger): Promise<LinkStore> {
  const folder = join(stateDirectory, platformFolder)
  const file = join(folder, name)
  // Files that cannot be swept are reported when they are written.
  await sweepTemporary(folder, name).catch(() => 0)
  const found = await readRegularFile(file, mostBytes).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn({ err: error }, 'the registration on the platform cannot be read; this host asks the platform')
    return undefined
  })
  let current = found && parse(found.bytes.toString())
  let pinned = current?.pinned

  async function write(next: Registration): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const kept = { ...next, ...(pinned === undefined ? {} : { pinned }) }
    await replaceFile(file, `${JSON.stringify(kept)}\n`, 0o600)
    await syncFolder(stateDirectory)
    current = kept
  }

  return {
    current: () => current,
    putRegistration({ edgeHostUid, projectUid, hostId, tenantUid }) {
      const known = current ? [...current.former, current] : []
      const generation = known.find((each) => each.edgeHostUid === edgeHostUid)?.generation ?? 0
      const former = known
        .filter((each) => each.edgeHostUid !== edgeHostUid)
        .map((each) => ({ edgeHostUid: each.edgeHostUid, generation: each.generation }))
        .slice(-mostFormer)
      const tenant = tenantUid === undefined ? {} : { tenantUid }
      return write({ edgeHostUid, projectUid, hostId, ...tenant, generation, isRemoved: false, former })
    },
    putGeneration: (generation) => write({ ...required(current), generation, isRemoved: false }),
    markRemoved: () => write({ ...required(current), isRemoved: true }),
    pinnedKey: (fingerprint) => (pinned?.fingerprint === fingerprint ? pinned.key : undefined),
    learnKey: (found) => (pinned = found),
  }
}

function isFormer(value: unknown): value is FormerGeneration {
  const { edgeHostUid, generation } = {
    ...(value as Partial<Record<keyof FormerGeneration, unknown>> | null),
  }
  return typeof edgeHostUid === 'string' && Number.isSafeInteger(generation)
}

function required(current: Registration | undefined): Registration {
  if (!current) throw new Error('this host is not registered')
  return current
}

function parse(text: string): Registration | undefined {
  try {
    const { edgeHostUid, projectUid, hostId, tenantUid, generation, isRemoved, pinned, former } = JSON.parse(
      text,
    ) as Partial<Record<keyof Registration, unknown>>
    return typeof edgeHostUid === 'string' &&
      typeof projectUid === 'string' &&
      typeof hostId === 'string' &&
      Number.isSafeInteger(generation)
      ? {
          edgeHostUid,
          projectUid,
          hostId,
          generation: generation as number,
          ...(typeof tenantUid === 'string' ? { tenantUid } : {}),
          isRemoved: isRemoved === true,
          ...(isPinnedKey(pinned) ? { pinned } : {}),
          // Not written by earlier versions.
          former: Array.isArray(former) ? former.filter(isFormer) : [],
        }
      : undefined
  } catch {
    return undefined
  }
}

function isPinnedKey(value: unknown): value is PinnedKey {
  const { fingerprint, key } = (value ?? {}) as Partial<Record<keyof PinnedKey, unknown>>
  return typeof fingerprint === 'string' && typeof key === 'string'
}
