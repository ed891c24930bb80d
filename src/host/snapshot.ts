import type { Mode } from '../base/role.ts'
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeDisk } from '../errors/advice.ts'
import { archTypeOf } from './machine.ts'
import {
  notApplicable,
  outOfCluster,
  shownNics,
  toDocument,
  type HostDocument,
  type HostInCluster,
  type PlatformOfHostInfo,
} from './document.ts'
import type { FactReading } from './fact.ts'
import type { Failure } from './document.ts'
import { createFacts, type FactsOptions, type HostHardware, type RefreshScope } from './facts.ts'
import type { HostRecord } from './identity/host-record.ts'
import type { EdgeHostInfo, HostUsage, Nic } from './schemas.ts'

/** The reply as it is sent. */
export interface SnapshotReply {
  /** Serialised once. Text rather than a Buffer: Node then writes header and body together, which saves a tenth of a reply's cost. */
  readonly body: string
  /** Strong: changes with every byte of the body. */
  readonly etag: string
}

/** Facts of the host, kept ready. Requests read `current()`; jobs call `refresh()`. */
export interface Snapshot {
  /**
   * Reads the facts of the scopes again and returns when the reply contains them. Calls during a reading share the next
   * one. A fact that cannot be read keeps its value; no error is thrown for it.
   */
  refresh(...scopes: readonly RefreshScope[]): Promise<void>
  /** The reply; undefined before the first reading is complete. */
  current(): SnapshotReply | undefined
  /** Starts the first `refresh('all')` unless it was started; returns when there is a reply. */
  firstReading(): Promise<void>
  /** Reads only name and addresses, which the certificate needs before the first request. */
  refreshNames(): Promise<void>
  hostName(): string
  /** Addresses under which clients may reach this host, without link-local and pods' addresses. */
  addresses(): readonly string[]
  /** Calls the listener when the host name or the addresses change; returns a function that removes it. */
  onNamesChange(listener: () => void): () => void
  /** Figures of each fact's last reading. */
  readings(): readonly FactReading[]
  /** Facts that cannot be read at the moment. */
  failures(): readonly Failure[]
  /** Interfaces as last read. */
  nics(): readonly Nic[]
  /** Space of the file systems as last read. */
  fileSystems(): HostUsage['fileSystems']
  /** Whether the time service keeps the clock by a source, as last read; undefined where that is not known. */
  isClockKept(): boolean | undefined
  /** Disks and display controllers as last read. */
  hardware(): HostHardware
  /**
   * Drops readings that end later, since the database is closed then. Only for the time when no request is in flight any more: one
   * that waits for the first reading would wait for ever.
   */
  stop(): void
}

export interface SnapshotOptions extends FactsOptions {
  /** The stored identity of this host. */
  readonly record: HostRecord
  readonly config: { readonly name?: string; readonly mode: Mode }
  readonly agentVersion: string
  /** State of this host in a cluster. */
  readonly cluster?: () => HostInCluster
  /** Name of the interface that is chosen for management; empty: none. */
  readonly management?: () => string
  /** Report of this host on its platform. */
  readonly platform?: () => PlatformOfHostInfo
  /** `process.arch` of the machine. */
  readonly arch?: string
}

/** Builds the snapshot; facts are read by the first `refresh('all')`. */
export function createSnapshot(options: SnapshotOptions): Snapshot {
  const { config, record, log, clock } = options
  const settings = {
    id: record.id,
    name: config.name ?? record.id,
    mode: config.mode,
    agentVersion: options.agentVersion,
    archType: archTypeOf(options.arch ?? process.arch),
  }

  const facts = createFacts(options)
  const { cluster = () => outOfCluster, platform = () => notApplicable, management = () => '' } = options

  let reply: SnapshotReply | undefined
  let written = ''
  let names = ''
  const listeners = new Set<() => void>()

  const publish = () => {
    const document = toDocument(
      facts.values(),
      { ...settings, cluster: cluster(), platform: platform(), management: management() },
      facts.failures(),
    )
    const text = JSON.stringify(document)
    if (text === written) return
    const lastModified = noteChange(document)
    const metadata: EdgeHostInfo['metadata'] = {
      creationTimestamp: record.createdAt.toISOString(),
      id: settings.id,
      lastModifiedTimestamp: lastModified.toISOString(),
      name: settings.name,
      labels: {},
      tags: {},
    }
    const body = JSON.stringify({ metadata, ...document })
    reply = { body, etag: `"${sha256(body).slice(0, 32)}"` }
    written = text
  }

  const noteChange = ({ spec, status }: HostDocument): Date => {
    const parts = JSON.stringify([settings.name, spec, status], (key, value: unknown) =>
      ignoredKeys.has(key) ? undefined : value,
    )
    try {
      return record.putFacts(sha256(parts))
    } catch (error) {
      // A full disk must not keep the host from answering.
      log.error({ err: error }, `the time of the last change could not be stored; ${seeDisk}`)
      return new Date(clock.now())
    }
  }

  const namesOfHost = () => {
    const { hostName = '', network } = facts.values()
    const first = network?.nics.find(({ nicName }) => nicName === management())?.ip
    const addresses = [...new Set(network?.addresses)].sort()
    // The console and the status name the address of the management interface first.
    return { hostName, addresses: addresses.sort((a, b) => Number(b === first) - Number(a === first)) }
  }
  const announceNames = () => {
    const { hostName, addresses } = namesOfHost()
    const next = [hostName, ...addresses].join()
    if (next === names) return
    names = next
    for (const listener of listeners) listener()
  }

  // Before the first complete reading there is no reply: a client could mistake a part for the whole.
  let isComplete = false
  let isStopped = false
  const known = Promise.withResolvers<undefined>()
  const show = (isWhole: boolean) => {
    if (isStopped) return
    isComplete ||= isWhole
    if (isComplete) {
      publish()
      known.resolve(undefined)
    }
    announceNames()
  }
  const read = async (scopes: ReadonlySet<RefreshScope>) => {
    const isWhole = scopes.has('all')
    // A slow fact does not delay the others.
    const early = setTimeout(() => show(isWhole), publishAfterMs)
    await facts.refresh(scopes)
    clearTimeout(early)
    show(isWhole)
  }

  let current: Promise<void> | undefined
  let next: { readonly scopes: Set<RefreshScope>; readonly done: Promise<void> } | undefined
  const refresh = (...wanted: readonly RefreshScope[]): Promise<void> => {
    if (next !== undefined) {
      for (const scope of wanted) next.scopes.add(scope)
      return next.done
    }
    const scopes = new Set(wanted)
    const begin = async () => {
      // The reading under way may have started before the caller's change. A reading that hangs is not waited for.
      if (current) await Promise.race([current, sleep(publishAfterMs, undefined, { ref: false })])
      next = undefined
      const mine = read(scopes)
      current = mine
      await mine
      if (current === mine) current = undefined
    }
    const done = Promise.resolve().then(begin)
    next = { scopes, done }
    return done
  }

  let first: Promise<void> | undefined
  return {
    refresh,
    current: () => reply,
    firstReading() {
      first ??= refresh('all')
      return known.promise
    },
    async refreshNames() {
      await facts.refreshNames()
      announceNames()
    },
    hostName: () => namesOfHost().hostName,
    addresses: () => namesOfHost().addresses,
    onNamesChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    nics: () => shownNics(facts.values(), management()),
    readings: facts.readings,
    failures: facts.failures,
    hardware: facts.hardware,
    fileSystems: facts.fileSystems,
    isClockKept: facts.isClockKept,
    stop: () => void (isStopped = true),
  }
}

// Far longer than most facts take, even on a small board. The reply is then published without waiting for the slow ones,
// which are added when they are read.
const publishAfterMs = 1_000

// Keys whose values do not count as a change of the host.
const ignoredKeys = new Set(['usedSpace', 'freeSpace', 'conditions'])

function sha256(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}
