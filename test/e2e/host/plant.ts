import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { kit, noKit } from '../../support/kubernetes-kit.ts'
import { plantVariables, writePlant } from '../cluster/plant-definition.ts'
import { layBridge, type Bridge } from './bridge.ts'
import { bootEdgehostd, type Edgehostd } from './edgehostd.ts'
import { bootEdgeplatform, type Edgeplatform } from './edgeplatform.ts'
import { eventually } from './eventually.ts'
import type { Host } from './host.ts'
import { askSocket } from './http.ts'
import type { Ended } from './process.ts'
import type { Lower } from './roots.ts'

/** Name of the platform for its hosts. */
export const platformName = 'platform.plant.example'
export const platformUrl = `https://${platformName}`

/** What `edgehostctl platform status -o json` shows. */
export interface LinkShown {
  readonly mode: string
  readonly registrationStatus: string
  readonly isConnected: boolean
  readonly edgeHostUid?: string
  readonly proxy?: string
  readonly cause?: { readonly kind: string; readonly message: string }
  readonly events: { readonly waiting: number; readonly dropped: number }
}

/** A host as `edgeplatformctl host list -o json` shows it, as far as the tests look at it. */
export interface DeviceShown {
  readonly metadata: { readonly uid: string; readonly name: string }
  readonly spec: {
    readonly device: {
      readonly archType?: string
      readonly cpu?: { readonly cores?: number }
      readonly memory?: { readonly sizeInMB?: number }
      readonly os?: { readonly family?: string; readonly version?: string }
      readonly nics?: readonly { readonly nicName?: string; readonly ip?: string }[]
    }
    readonly host: { readonly hostUid: string; readonly hostAddress: string }
    readonly service: { readonly name?: string; readonly version?: string }
  }
  readonly status: {
    readonly health?: {
      readonly state: string
      readonly message: string
      readonly lastHeartbeatTimestamp: string
    }
    readonly isDuplicate?: boolean
  }
}

/** A host of the plant. */
export interface PlantHost extends Edgehostd {
  /** Its address on the bridge. */
  readonly address: string
  /** `edgehostctl`, as root on the host. */
  ctl(...args: readonly string[]): Promise<Ended>
  /** Connects it with a new token; each further argument is one of `platform connect`. */
  connect(...more: readonly string[]): Promise<Ended>
  link(): Promise<LinkShown>
  /** A request of root over its local socket; gives status and body. */
  asRoot(method: string, path: string, body?: unknown): ReturnType<typeof askSocket>
  /** Waits until its link is so. */
  untilLink(is: (link: LinkShown) => boolean, timeoutMs?: number): Promise<LinkShown>
  /** Pulls its cable, or plugs it in again. */
  plug(isIn: boolean): Promise<void>
}

/** A booted platform and booted hosts on a bridge, all installed from their packages. */
export interface Plant {
  readonly platform: Edgeplatform
  readonly hosts: readonly PlantHost[]
  /** Machines on the bridge without a package of ours. */
  readonly others: readonly (Host & { readonly address: string })[]
  /** `edgeplatformctl`, as root on the machine of the platform; it has to succeed. @returns what it prints as JSON */
  ask<T>(...args: readonly string[]): Promise<T>
  fingerprint(): Promise<string>
  makeToken(...more: readonly string[]): Promise<string>
  /** What `host list` shows, with a filter if one is given. */
  devices(filter?: string): Promise<readonly DeviceShown[]>
  unplug(): Promise<void>
}

export interface PlantOptions {
  /** What each host stands on. */
  readonly hosts: readonly Lower[]
  /** Further machines on the bridge. */
  readonly others?: readonly Host[]
}

/** Boots all; the platform has its name, and each host knows its address. */
export async function bootPlant({ hosts: lowers, others = [] }: PlantOptions): Promise<Plant> {
  const booted: Host[] = [...others]
  const keep = async <T extends Host>(booting: Promise<T>): Promise<T> => {
    const host = await booting
    booted.push(host)
    return host
  }
  let bridge: Bridge | undefined
  const unplug = async () => {
    await bridge?.cut()
    await Promise.all(booted.map((host) => host.unplug()))
  }
  try {
    const platform = await keep(bootEdgeplatform({ lower: 'minbase', wire: false }))
    const bare: Edgehostd[] = []
    for (const lower of lowers) bare.push(await keep(bootEdgehostd({ lower, wire: false })))
    const onBridge = [platform, ...bare, ...others]
    bridge = await layBridge(onBridge.map(({ leader }) => leader))
    const { addresses, plug } = bridge
    await platform.write('/etc/edgeplatform/config.d/10-site.yaml', `platform: {hostName: ${platformName}}\n`)
    await platform.output(['systemctl', 'restart', 'edgeplatformd'])
    await platform.trust()
    const ask = async <T>(...args: readonly string[]) =>
      JSON.parse(await platform.output(['edgeplatformctl', '-o', 'json', ...args])) as T
    const fingerprint = async () =>
      (await ask<{ certificate: { fingerprint: string } }>('status')).certificate.fingerprint
    let tokens = 0
    const makeToken = async (...more: readonly string[]) =>
      (
        await platform.output(['edgeplatformctl', 'token', 'create', `token-${(tokens += 1)}`, ...more])
      ).trim()

    const hosts: PlantHost[] = []
    for (const [index, host] of bare.entries()) {
      await host.sh(
        `hostname edge-$1; echo edge-$1 > /etc/hostname
        printf '%s %s\\n' "$2" ${platformName} "$2" other.plant.example >> /etc/hosts`,
        String(index + 1),
        addresses[0]!,
      )
      const ctl = (...args: readonly string[]) => host.run(['edgehostctl', ...args])
      const link = async () => {
        // Ends with 1 while the host is not connected.
        const { stdout, stderr } = await ctl('-o', 'json', 'platform', 'status')
        if (!stdout.startsWith('{')) throw new Error(stderr)
        return JSON.parse(stdout) as LinkShown
      }
      hosts.push({
        ...host,
        get leader() {
          return host.leader
        },
        address: addresses[index + 1]!,
        ctl,
        async connect(...more) {
          await host.write('/root/token', `${await makeToken()}\n`, 0o600)
          return ctl('platform', 'connect', platformUrl, '--token-file', '/root/token', ...more)
        },
        link,
        asRoot: (method, path, body) =>
          askSocket(`/proc/${host.leader}/root/run/edgehostd/edgehostd.sock`, method, path, body),
        untilLink: (is, timeoutMs) =>
          eventually(async () => {
            const found = await link()
            if (!is(found)) throw new Error(JSON.stringify(found))
            return found
          }, timeoutMs),
        plug: (isIn) => plug(index + 1, isIn),
      })
    }
    return {
      ...{ platform, hosts, ask, fingerprint, makeToken },
      others: others.map((host, index) =>
        Object.assign(host, { address: addresses[1 + hosts.length + index]! }),
      ),
      async devices(filter) {
        const more = filter === undefined ? [] : ['--filter', filter]
        const { items } = await ask<{ items: DeviceShown[] }>('host', 'list', ...more)
        // The list leaves long facts out.
        return Promise.all(items.map(({ metadata }) => ask<DeviceShown>('host', 'show', metadata.uid)))
      },
      unplug,
    }
  } catch (error) {
    await unplug()
    throw error
  }
}

/** Wants a cluster of a host on the platform, by the definition of the tests of clusters; the platform gets its packs and its profile. */
export async function wantCluster({ platform }: Plant, host: PlantHost, name: string): Promise<void> {
  const found = await kit()
  if (!found) throw new Error(noKit)
  const folder = join(host.folder, 'plant')
  await writePlant(folder, found)
  await cp(folder, `/proc/${platform.leader}/root/root/plant`, { recursive: true })
  await platform.sh('for pack in /root/plant/packs/*/; do edgeplatformctl pack upload "$pack"; done')
  const profile = ['edgeplatformctl', 'profile', 'import', '/root/plant/profile.json']
  const uid = (await platform.output(profile)).trim()
  const edgeHosts = [{ hostUid: (await host.link()).edgeHostUid }]
  const { status, text } = await platform.asRoot('POST', '/v1/spectroclusters/edge-native', {
    metadata: { name },
    spec: {
      cloudConfig: {},
      machinepoolconfig: [{ cloudConfig: { edgeHosts }, poolConfig: {} }],
      profiles: [{ uid, variables: plantVariables.map(({ name, value }) => ({ name, value })) }],
    },
  })
  if (status !== 201) throw new Error(text)
}
