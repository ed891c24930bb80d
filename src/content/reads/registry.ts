import type { RegistryContentDetails, RegistryHealthDetails } from '../schemas.ts'
import { publishedEntries, type IndexDatabase, hasTag } from '../store/index-database.ts'
import { addressWithPort } from '../../base/address.ts'
import { AppError } from '../../errors/app-error.ts'
import type { RegistryState } from '../registry/registry.ts'
import type { OpenStore } from '../store/open-store.ts'
import type { FileSystemRoom } from '../store/folder.ts'

// The reply has no pages.
const maximumRows = 10_000

/** Registries that the names of published images are of, in the order of their characters. */
export async function listHosts({ read }: IndexDatabase): Promise<string[]> {
  const sql = `SELECT DISTINCT substr(entry.name, 1, instr(entry.name, '/') - 1) AS host ${publishedEntries}
    AND entry.name <> '' ORDER BY host`
  const [rows = []] = await read([{ sql, values: [] }])
  return rows.map(({ host }) => String(host))
}

// An entry without its tag, which a newer bundle has, is shown if it has no other tag: it can be pulled by its digest.
const details = `
  WITH each AS (SELECT kind, digest, entry.name AS name, title, size_bytes, published_at,
    CASE WHEN entry.name = '' THEN version WHEN ${hasTag} THEN entry.tag ELSE '' END AS label ${publishedEntries}),
  distinct_ones AS (SELECT kind, digest, name, title, label, size_bytes,
    min(min(published_at)) OVER same AS added, max(label) OVER same AS best
    FROM each GROUP BY kind, digest, name, title, label WINDOW same AS (PARTITION BY kind, digest, name, title))
  SELECT kind, digest, name, title, label, size_bytes, added FROM distinct_ones
  WHERE label <> '' OR best = '' ORDER BY added DESC, name, title, label, digest LIMIT ?`

/** Content that can be pulled from this host, equal entries of several bundles once, the newest first; at most 10,000. */
export async function listRegistryContent({ read }: IndexDatabase): Promise<RegistryContentDetails[]> {
  const [rows = []] = await read([{ sql: details, values: [maximumRows] }])
  return rows.map(({ kind, digest, name, title, label, size_bytes: sizeBytes, added }) => ({
    name: String(name || title || digest),
    version: String(label || digest),
    contentType: kind === 'image' || kind === 'chart' ? kind : 'artifact',
    size: binaryAmount(Number(sizeBytes)),
    dateAdded: new Date(Number(added)).toISOString(),
  }))
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A size as replies about the registry spell it: `12.3 GiB`. */
function binaryAmount(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 1_023.95 && unit < units.length - 1; unit += 1) value /= 1_024
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ''}`
}

/** Whether images can be pulled from this host, and the disk that they are on. */
export async function readRegistryHealth(
  store: OpenStore,
  state: RegistryState,
): Promise<RegistryHealthDetails> {
  const found = await readStore(store)
  const disk = found.room ? describeDisk(found.room) : {}
  if (!state.isEnabled)
    return {
      State: 'NotInstalled',
      Message: 'the registry is switched off; set content.registry.enabled: true and restart edgehostd',
      ...disk,
    }
  const problems = [...problemsOf(state), ...found.problems]
  return {
    State: problems.length > 0 ? 'Unhealthy' : 'Healthy',
    Message: problems.length > 0 ? problems.join('; ') : `the registry listens on ${urlOf(state)}`,
    ...disk,
  }
}

interface StoreHealth {
  readonly problems: readonly string[]
  /** Absent if the content cannot be read. */
  readonly room?: FileSystemRoom
}

async function readStore(store: OpenStore): Promise<StoreHealth> {
  try {
    await store.open()
    return { room: await store.space.read(), problems: damageOf(store) }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { problems: [error.message] }
  }
}

function damageOf(store: OpenStore): string[] {
  const damagedBlobs = store.totals()?.damagedBlobs ?? 0
  return [
    ...(store.isUsable()
      ? []
      : ['the content of this host could not be read or written; the journal of the host says why']),
    ...(store.isComplete()
      ? []
      : [
          'the record of a bundle is damaged, so what it has cannot be pulled; the journal of the host says which, upload that bundle again',
        ]),
    ...(damagedBlobs > 0
      ? [
          `blobs are damaged and not served (${damagedBlobs}); upload again the bundles that edgehostctl content list shows as damaged`,
        ]
      : []),
  ]
}

function problemsOf(state: RegistryState): string[] {
  if (state.problem !== undefined) return [state.problem]
  return state.isListening
    ? []
    : [`the registry does not listen on ${urlOf(state)} yet: edgehostd is starting`]
}

const urlOf = ({ address, port, isTls }: RegistryState): string =>
  `${isTls ? 'https' : 'http'}://${addressWithPort(address, port)}`

function describeDisk({ totalBytes, freeBytes }: FileSystemRoom) {
  const usedBytes = totalBytes - freeBytes
  return {
    DiskCapacity: binaryAmount(totalBytes),
    DiskUsed: binaryAmount(usedBytes),
    DiskAvailable: binaryAmount(freeBytes),
    UsagePercentage: `${Math.round((usedBytes / totalBytes) * 100)}%`,
  }
}
