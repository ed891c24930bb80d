// The configuration of this host is a sealed row: what shall be. A job compares it each second with what was put in place, by a mark, and has the difference
// made by the verb `place-configuration`, which may be done any number of times. So a kill, a restart or a power cut at any moment is no loss: the row was
// written before the reply, and the next turn of the job does what is left. What is in place depends on the cluster too, whose networks need no proxy.

import { uuidAt } from '../base/uid.ts'
import { AppError } from '../errors/app-error.ts'
import type { SystemEntry } from '../audit/own-entries.ts'
import { isExempt, type HostWay } from '../outgoing/proxy.ts'
import type { Attention, BusyReason } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import { isInSubnet, parseSubnet } from '../base/subnet.ts'
import { configurationErrors } from './codes.ts'
import {
  differences,
  environmentOf,
  exemptionsOf,
  isSame,
  networksOfLinks,
  nothing,
  readConfiguration,
  shownConfiguration,
  type ClusterRanges,
} from './content.ts'
import type { ConfigurationDryRun, EdgeHostConfigurations, EdgeHostConfigurationStatus } from './schemas.ts'
import type { ConfigurationStore, Stored, Wanted } from './store.ts'
import type { Placement } from './placement.ts'

export interface ConfigurationOptions {
  readonly store: ConfigurationStore
  /** Puts it in place. @returns the units that were restarted @throws Error with a reason for operators */
  readonly place: (placement: Placement) => Promise<readonly string[]>
  /** Those units that would be restarted now. */
  readonly activeUnits: () => Promise<readonly string[]>
  /** Whether this host has the program that makes authorities known. */
  readonly canTrust: () => Promise<boolean>
  /** Addresses of the links of this host, as `192.0.2.7/24`. */
  readonly addresses: () => readonly string[]
  readonly cluster: ConfiguredCluster
  /** The way of outgoing calls is another one now. */
  readonly onChange: () => void
  readonly record: (entry: SystemEntry) => void
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Logger
}

/** The cluster of this host, as far as it concerns the configuration. */
export interface ConfiguredCluster {
  ranges(): Promise<ClusterRanges>
  /** Work whose containerd and kubelet are not to be restarted now. */
  busy(): readonly BusyReason[]
}

/** Proxies and authorities of this host. */
export interface Configuration {
  /** With masks. */
  show(): EdgeHostConfigurations
  status(): Promise<EdgeHostConfigurationStatus>
  /** What a change would do. @throws AppError BadRequest, AuthoritiesUnsupported */
  plan(body: EdgeHostConfigurations): Promise<ConfigurationDryRun>
  /** Accepts a change; `tick` makes it. @throws AppError BadRequest, AuthoritiesUnsupported */
  put(body: EdgeHostConfigurations): Promise<{ readonly uid: string; readonly changes: readonly string[] }>
  /** Puts missing parts in place. To be called each second, not twice at a time. Never throws. */
  tick(): Promise<void>
  readonly way: HostWay
  /** The way that outgoing calls would go with a change. @throws AppError as `plan` */
  wayWith(body: EdgeHostConfigurations): Promise<HostWay>
  attention(): readonly Attention[]
  busy(): readonly BusyReason[]
}

const retryMs = 30_000

function proxyIn(wanted: Wanted, url: string, exemptions: () => readonly string[]): string | undefined {
  const proxy = url.startsWith('http:') ? wanted.httpProxy : wanted.httpsProxy
  return proxy === undefined || isExempt(url, exemptions()) ? undefined : proxy
}

export function createConfiguration(options: ConfigurationOptions): Configuration {
  const { store, place, activeUnits, canTrust, addresses, cluster, onChange, record, clock, log } = options
  let retryAt = -Infinity
  let isPlacing = false
  let waitsFor: string | undefined
  /** As last computed, for the calls of the daemon. */
  let exemptions: readonly string[] | undefined

  const wantedNow = () => store.current()?.wanted ?? nothing

  async function read(body: EdgeHostConfigurations): Promise<Wanted> {
    const wanted = readConfiguration(body, wantedNow(), clock.now())
    if (wanted.certificates.length > 0 && !(await canTrust()))
      throw new AppError(
        configurationErrors.AuthoritiesUnsupported,
        'caCerts cannot be made known to this host: install the package ca-certificates',
        { details: { field: 'caCerts' } },
      )
    return wanted
  }

  async function contentOf({ wanted, ranges }: Pick<Stored, 'wanted' | 'ranges'>) {
    const exempt = exemptionsOf(wanted, ranges, await cluster.ranges())
    return { exempt, environment: environmentOf(wanted, exempt), certificates: wanted.certificates }
  }
  const markOf = ({
    environment,
    certificates,
  }: Pick<Placement, 'environment'> & { readonly certificates: readonly string[] }) =>
    store.markOf([environment, certificates])
  const emptyMark = () => markOf({ environment: '', certificates: [] })

  /** The network of a node that came after the last change. */
  async function withNodeNetworks(stored: Stored): Promise<Stored> {
    const missing = (await cluster.ranges()).addresses.filter((address) =>
      stored.ranges.every((range) => {
        const subnet = parseSubnet(range)
        return subnet === undefined || !isInSubnet(address, subnet)
      }),
    )
    const found = networksOfLinks(addresses()).filter((network) => {
      const subnet = parseSubnet(network)
      return subnet !== undefined && missing.some((address) => isInSubnet(address, subnet))
    })
    if (found.length === 0) return stored
    const ranges = [...stored.ranges, ...found]
    store.note({ ranges })
    return { ...stored, ranges }
  }

  async function turn(): Promise<void> {
    const row = store.current()
    if (!row || clock.monotonic() < retryAt) return
    const stored = await withNodeNetworks(row)
    const content = await contentOf(stored)
    exemptions = content.exempt
    const mark = markOf(content)
    waitsFor = undefined
    if (mark === stored.placed) return
    // Nothing has ever been there.
    if (stored.placed === '' && mark === emptyMark() && stored.reason === '') {
      store.note({ placed: mark })
      return
    }
    const [work] = cluster.busy()
    if (work !== undefined && (await activeUnits()).length > 0) {
      waitsFor = work.message
      return
    }
    isPlacing = true
    const { environment, certificates } = content
    const restarted = await place({ revision: stored.revision, environment, certificates: [...certificates] })
    // A request may have come meanwhile: its row has another uid, and its own turn.
    if (store.current()?.revision !== stored.revision) return
    store.note({ placed: mark, reason: '' })
    const message = `The configuration of proxy and authorities is in place${restarted.length === 0 ? '' : `; restarted: ${restarted.join(', ')}`}`
    record({ action: 'action', kind: 'configuration', resourceUid: stored.uid, message })
    log.info({ uid: stored.uid, restarted }, 'the configuration of proxy and authorities is in place')
  }

  return {
    show: () => shownConfiguration(wantedNow()),

    async status() {
      const row = store.current()
      if (!row) return { state: 'Not Configured' }
      const { exempt, environment, certificates } = await contentOf(row)
      const mark = markOf({ environment, certificates })
      const more = { uid: row.uid, ...(environment === '' ? {} : { noProxy: exempt.join(',') }) }
      if (mark === row.placed)
        return { state: mark === emptyMark() ? 'Not Configured' : 'Configured', ...more }
      if (row.reason !== '') return { state: 'Failed', errorMessage: row.reason, ...more }
      return { state: 'In Progress', ...(waitsFor === undefined ? {} : { waitsFor }), ...more }
    },

    async plan(body) {
      const wanted = await read(body)
      const present = wantedNow()
      const ranges = networksOfLinks(addresses())
      const { exempt, environment, certificates } = await contentOf({ wanted, ranges })
      const isPlaced = store.current()?.placed === markOf({ environment, certificates })
      return {
        changes: [...differences(present, wanted)],
        restarts:
          isPlaced || (isSame(present, wanted) && isSame(wanted, nothing)) ? [] : [...(await activeUnits())],
        noProxy: environment === '' ? [] : [...exempt],
      }
    },

    async put(body) {
      const wanted = await read(body)
      const present = wantedNow()
      const uid = uuidAt(clock.now())
      store.put({ uid, wanted, ranges: networksOfLinks(addresses()), at: clock.now() })
      retryAt = -Infinity
      // Before the first turn the calls of the daemon go that way.
      exemptions = undefined
      if (!isSame(present, wanted)) onChange()
      return { uid, changes: differences(present, wanted) }
    },

    async tick() {
      try {
        await turn()
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        retryAt = clock.monotonic() + retryMs
        if (store.current()?.reason === reason) return
        log.error(
          { err: error },
          'the configuration of proxy and authorities is not in place; it is tried again',
        )
        try {
          store.note({ reason })
        } catch (unwritten) {
          log.error({ err: unwritten }, 'why the configuration is not in place could not be stored')
        }
      } finally {
        isPlacing = false
      }
    },

    way: {
      proxyFor(url) {
        const { wanted, ranges } = store.current() ?? { wanted: nothing, ranges: [] }
        return proxyIn(
          wanted,
          url,
          () => exemptions ?? exemptionsOf(wanted, ranges, { networks: [], addresses: [] }),
        )
      },
      authorities: () => wantedNow().certificates,
    },

    async wayWith(body) {
      const wanted = await read(body)
      const { exempt } = await contentOf({ wanted, ranges: networksOfLinks(addresses()) })
      return {
        proxyFor: (url) => proxyIn(wanted, url, () => exempt),
        authorities: () => wanted.certificates,
      }
    },

    attention() {
      const row = store.current()
      if (!row || row.reason === '') return []
      return [
        {
          code: 'ConfigurationFailed',
          severity: 'error',
          message: `the proxy or the authorities of this host are not in place: ${row.reason}`,
          command: 'edgehostctl configuration get',
        },
      ]
    },

    busy: () =>
      isPlacing
        ? [
            {
              reason: 'Configuration',
              message: 'the proxy and the authorities of this host are being put in place',
            },
          ]
        : [],
  }
}
