import { createHash } from 'node:crypto'
import { statfs as systemStatfs } from 'node:fs/promises'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { archTypeOf, readCores } from './cpu.ts'
import { readDisks, type Statfs } from './disks.ts'
import { readDns } from './dns.ts'
import { toDocument, type HostDocument } from './document.ts'
import { createFact, type RefreshClass } from './fact.ts'
import type { HostFiles } from './files.ts'
import { readGpus } from './gpus.ts'
import { openHostRecord } from './host-record.ts'
import { readTotalMemory } from './memory.ts'
import { readIpv4Addresses, readNetwork, type Ipv4Addresses } from './network.ts'
import { readNtp } from './ntp.ts'
import { readHostName, readOperatingSystem } from './operating-system.ts'
import type { EdgeHostInfo } from './schemas.ts'

/** `all` reads every fact, the others those of their class. */
export type RefreshScope = 'all' | RefreshClass

/** The reply as it goes over the wire. */
export interface SnapshotReply {
  /** Serialised once. Text rather than a Buffer: Node then writes header and body in one go, a tenth of a reply's cost. */
  readonly body: string
  /** Strong: changes with every byte of the body. */
  readonly etag: string
  /** When a fact last changed; used and free space do not count. */
  readonly lastModified: Date
}

/** What the host is, kept ready. Requests read `current()`; jobs call `refresh()`. */
export interface Snapshot {
  /**
   * Reads the facts of the scope anew and returns when the reply holds them. Calls that come while one is
   * running share the next one. A fact that cannot be read keeps its value; nothing is thrown for it.
   */
  refresh(scope: RefreshScope): Promise<void>
  /** undefined before the first refresh is complete. */
  current(): SnapshotReply | undefined
  /** Identity of this host. */
  id(): string
  hostName(): string
  /** Addresses under which clients may reach this host, the link-local and the pods' left out. */
  addresses(): readonly string[]
  /** Calls when addresses come or go; returns how to end that. */
  onAddressChange(listener: (addresses: readonly string[]) => void): () => void
}

export interface SnapshotOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly clock: Clock
  readonly log: Logger
  readonly database: Database
  readonly config: { readonly id?: string; readonly name?: string; readonly mode: 'airgap' | 'connected' }
  readonly agentVersion: string
  // The three questions that no file of a fixture tree can answer.
  readonly statfs?: Statfs
  readonly ipv4Addresses?: Ipv4Addresses
  readonly totalMemory?: typeof readTotalMemory
  /** `process.arch` of the machine. */
  readonly arch?: string
  /** A fact that takes longer counts as failed. */
  readonly deadlineMs?: number
}

/** Builds the snapshot and settles the identity; facts are read by the first `refresh('all')`. */
export async function createSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { files, runner, log, config } = options
  const statfs: Statfs = options.statfs ?? ((path) => systemStatfs(path))
  const { ipv4Addresses = readIpv4Addresses, totalMemory = readTotalMemory } = options
  const record = await openHostRecord({ ...options, configuredId: config.id })
  const settings = {
    id: record.id,
    name: config.name ?? record.id,
    mode: config.mode,
    agentVersion: options.agentVersion,
    archType: archTypeOf(options.arch ?? process.arch),
  }

  const fact = <T>(name: string, refreshClass: RefreshClass, read: () => Promise<T>) =>
    createFact({ name, refreshClass, read, log, deadlineMs: options.deadlineMs ?? 5_000 })
  const facts = {
    cores: fact('cores', 'minutes', () => readCores(files)),
    disks: fact('disks', 'seconds', () => readDisks(files, statfs)),
    dns: fact('dns', 'seconds', () => readDns(files)),
    gpus: fact('gpus', 'minutes', () => readGpus(files)),
    hostName: fact('hostName', 'seconds', () => readHostName(files)),
    memory: fact('memory', 'minutes', totalMemory),
    network: fact('network', 'seconds', () => readNetwork(files, ipv4Addresses)),
    ntp: fact('ntp', 'minutes', () => readNtp(files, runner)),
    operatingSystem: fact('operatingSystem', 'minutes', () => readOperatingSystem(files)),
  }

  let reply: SnapshotReply | undefined
  let written = ''
  let addresses: readonly string[] = []
  const listeners = new Set<(addresses: readonly string[]) => void>()

  const publish = () => {
    const failures = Object.values(facts).flatMap((fact) => {
      const reason = fact.failure()
      return reason === undefined ? [] : [{ name: fact.name, reason }]
    })
    const values = {
      cores: facts.cores.value(),
      disks: facts.disks.value(),
      dns: facts.dns.value(),
      gpus: facts.gpus.value(),
      hostName: facts.hostName.value(),
      memory: facts.memory.value(),
      network: facts.network.value(),
      ntp: facts.ntp.value(),
      operatingSystem: facts.operatingSystem.value(),
    }
    const document = toDocument(values, settings, failures)
    const text = JSON.stringify(document)
    if (text === written) return
    const lastModified = noteChange(document)
    const metadata: EdgeHostInfo['metadata'] = {
      creationTimestamp: record.createdAt.toISOString(),
      id: settings.id,
      lastModifiedTimestamp: lastModified.toISOString(),
      name: settings.name,
    }
    const body = JSON.stringify({ metadata, ...document })
    reply = { body, etag: `"${sha256(body).slice(0, 32)}"`, lastModified }
    written = text
  }

  const noteChange = ({ spec, status }: HostDocument): Date => {
    const parts = JSON.stringify([settings.name, spec, status], (key, value: unknown) =>
      passing.has(key) ? undefined : value,
    )
    return record.noteFacts(sha256(parts))
  }

  const announceAddresses = () => {
    const next = [...new Set(facts.network.value()?.addresses)].sort()
    if (next.join() === addresses.join()) return
    addresses = next
    for (const listener of listeners) listener(next)
  }

  const refreshNow = async (scopes: ReadonlySet<RefreshScope>) => {
    const due = Object.values(facts).filter(
      ({ refreshClass }) => scopes.has('all') || scopes.has(refreshClass),
    )
    await Promise.all(due.map((fact) => fact.refresh()))
    publish()
    announceAddresses()
  }

  let running: Promise<void> | undefined
  let next: { readonly scopes: Set<RefreshScope>; readonly done: Promise<void> } | undefined
  const refresh = (scope: RefreshScope): Promise<void> => {
    if (next !== undefined) {
      next.scopes.add(scope)
      return next.done
    }
    const scopes = new Set([scope])
    const begin = () => {
      next = undefined
      running = refreshNow(scopes).finally(() => (running = undefined))
      return running
    }
    if (running === undefined) return begin()
    // A refresh that is under way may have read before the caller's change: the caller shares the one after.
    next = { scopes, done: running.then(begin, begin) }
    return next.done
  }

  return {
    refresh,
    current: () => reply,
    id: () => settings.id,
    hostName: () => facts.hostName.value() ?? '',
    addresses: () => addresses,
    onAddressChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

// Keys that do not count as a change of the host.
const passing = new Set(['usedSpace', 'freeSpace', 'conditions'])

function sha256(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}
