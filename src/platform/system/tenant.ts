import { randomUUID } from 'node:crypto'
import type { SystemEntry } from '../../audit/own-entries.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import { hostname, networkInterfaces } from 'node:os'
import type { Job } from '../../root/room.ts'

/** The one tenant of this platform. */
export const tenantTables = `
  CREATE TABLE tenant (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    uid TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
`

/** The tenant: all that one platform manages. */
export interface Tenant {
  readonly uid: string
  /** Audit records of the creation, to be recorded once there is a trail. */
  readonly auditEntries: readonly SystemEntry[]
}

/** Whether the database has a tenant: only one that began empty has none. */
export const hasTenant = ({ sql }: Database): boolean =>
  sql.prepare('SELECT 1 FROM tenant').get() !== undefined

/** Whether a platform has run on the database: the first record of its trail comes after the tenant and the secret. */
export const hasTrail = ({ sql }: Database): boolean => sql.prepare('SELECT 1 FROM audit').get() !== undefined

/** Reads the tenant, and makes it at the first start. */
export function openTenant({
  database: { sql },
  clock,
}: {
  readonly database: Database
  readonly clock: Clock
}): Tenant {
  const known = sql.prepare('SELECT uid FROM tenant').get() as { uid: string } | undefined
  if (known) return { uid: known.uid, auditEntries: [] }
  const uid = randomUUID()
  sql.prepare('INSERT INTO tenant (one, uid, created_at) VALUES (1, ?, ?)').run(uid, clock.now())
  return {
    uid,
    auditEntries: [{ action: 'create', kind: 'tenant', resourceUid: uid, message: 'Make the tenant' }],
  }
}

interface OwnNamesOptions {
  /** The name that the configuration gives. */
  readonly hostName: string | undefined
  /** The name of this machine and its addresses; the default asks the kernel. */
  readonly machine?: () => { readonly name: string; readonly addresses: readonly string[] }
}

/** The names of this machine, for the certificate. */
interface OwnNames {
  hostName(): string
  /** Addresses at which others may reach this machine; not the loopback. */
  addresses(): readonly string[]
  /** Registers a listener, called when a name or an address has changed. */
  onNamesChange(listener: () => void): void
  readonly job: Job
}

/** Asks for the names each minute; node:os has no notification of a change. */
export function createOwnNames({ hostName, machine = ofThisMachine }: OwnNamesOptions): OwnNames {
  let current = machine()
  const listeners: (() => void)[] = []
  return {
    hostName: () => hostName ?? current.name,
    addresses: () => current.addresses,
    onNamesChange: (listener) => void listeners.push(listener),
    job: {
      name: 'own names',
      schedule: '7 * * * * *',
      stuckAfterMs: 300_000,
      run() {
        const next = machine()
        const isSame = JSON.stringify(next) === JSON.stringify(current)
        current = next
        if (!isSame) for (const tell of listeners) tell()
      },
    },
  }
}

function ofThisMachine() {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const reachable = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  return { name: hostname(), addresses: [...new Set(reachable.map(({ address }) => address))].sort() }
}
