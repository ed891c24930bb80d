import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, syncFolder } from '../../system/files.ts'
import { readRegularFile } from '../../system/regular-file.ts'
import type { Logger } from '../../system/log.ts'
import { platformFolder } from '../host-key.ts'

/** Announcement of the desired cluster in the reply to a heartbeat. */
export interface Announcement {
  /** Rises with each change of the desired state. */
  readonly number: number
  /** `<number>-<first 32 hex digits of the SHA-256 of the download>`, without quotes. */
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

/** @returns undefined where nothing is desired, and for a header that no platform sends */
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
    number,
    etag,
    uid: typeof uid === 'string' && uidForm.test(uid) ? uid : undefined,
    ...(found.get('deletion') === 1 ? { isDeletion: true } : {}),
  }
}

/** The beginning of the SHA-256, hex, in the ETag. */
export const sumIn = (etag: string): string => etagForm.exec(etag)?.[2] ?? ''

/** Outcomes of orders of the platform. */
const keptOutcomes = [
  ...(['applied', 'refused', 'contentMissing', 'clusterExists'] as const),
  ...(['newerOnHost', 'deleting', 'deleted'] as const),
] as const

/** The newest order of the platform that this host has dealt with. */
export interface KeptOrder {
  /** Of the platform; empty where the delivery could not be read. */
  readonly tenantUid: string
  /** Of the cluster; empty where the delivery could not be read. */
  readonly uid: string
  readonly name: string
  readonly number: number
  readonly etag: string
  readonly outcome: (typeof keptOutcomes)[number]
  /** Why, for operators; masked. */
  readonly message: string
  /** The newest number of this cluster that was accepted; 0 for none. */
  readonly accepted: number
  /** The revision that it has made, or found; 0 for none. */
  readonly revision: number
}

/** `platform/wanted.json` in the state folder. */
export interface DesiredStore {
  current(): KeptOrder | undefined
  /** On the disk when its promise is fulfilled. @throws the system's error */
  put(desired: KeptOrder): Promise<void>
}

const mostBytes = 65_536
const longestMessage = 8_192

/** Opens the store. A file that cannot be read counts as none: the order is then fetched again, and found to be there already. */
export async function openDesiredStore(stateDirectory: string, log: Logger): Promise<DesiredStore> {
  const folder = join(stateDirectory, platformFolder)
  const file = join(folder, wantedFile)
  let current = await readKeptOrder(stateDirectory).catch((error: unknown) => {
    log.warn({ err: error }, 'the last order of the platform cannot be read; it is fetched again')
    return undefined
  })
  return {
    current: () => current,
    async put(desired) {
      const next = { ...desired, message: desired.message.slice(0, longestMessage) }
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await replaceFile(file, `${JSON.stringify(next)}\n`, 0o600)
      await syncFolder(stateDirectory)
      current = next
    },
  }
}

const wantedFile = 'wanted.json'

/**
 * Reads the kept order, also while the daemon does not run.
 * @returns undefined where nothing is kept, or not as it was written
 * @throws the system's error
 */
export async function readKeptOrder(stateDirectory: string): Promise<KeptOrder | undefined> {
  const found = await readRegularFile(join(stateDirectory, platformFolder, wantedFile), mostBytes).catch(
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return undefined
    },
  )
  return found && parse(found.bytes.toString())
}

function parse(text: string): KeptOrder | undefined {
  try {
    const found = JSON.parse(text) as Partial<Record<keyof KeptOrder, unknown>>
    const texts = [found.tenantUid, found.uid, found.name, found.etag, found.message]
    const numbers = [found.number, found.accepted, found.revision]
    const isWhole =
      texts.every((each) => typeof each === 'string') &&
      numbers.every((each) => Number.isSafeInteger(each)) &&
      (keptOutcomes as readonly unknown[]).includes(found.outcome)
    return isWhole ? (found as KeptOrder) : undefined
  } catch {
    return undefined
  }
}
