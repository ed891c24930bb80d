import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { bootClusterHost, type ClusterHost } from '../e2e/cluster/cluster-host.ts'
import { sensitiveValue, writePlant } from '../e2e/cluster/plant-definition.ts'
import { bootEdgeplatform, type Edgeplatform } from '../e2e/host/edgeplatform.ts'
import { eventually } from '../e2e/host/eventually.ts'
import type { Host } from '../e2e/host/host.ts'
import { output } from '../e2e/host/process.ts'

/** The heartbeat of a minute, and what a host of a loaded machine takes. */
export const comesMs = 1_200_000

const platformName = 'platform.plant.example'
const platformAddress = '10.77.0.9'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly observedGeneration?: number
}
export interface ClusterShown {
  readonly metadata: { readonly uid: string }
  readonly spec: { readonly number: number }
  readonly status: { readonly state: string; readonly conditions: readonly Condition[] }
}

/** A host that is connected. */
export interface ConnectedHost extends ClusterHost {
  readonly edgeHostUid: string
  /** Connects it again, after a disconnection. */
  connect(): Promise<void>
}

/** A platform with a profile, and hosts that can hold a cluster each; all are booted. */
export interface PlatformPlant {
  readonly platform: Edgeplatform
  readonly hosts: readonly ConnectedHost[]
  readonly profileUid: string
  /** A request of root on the platform, which has to succeed. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Body of POST …/edge-native. */
  entity(host: ConnectedHost, name: string, greeting: string): object
  /** @returns uid of the cluster */
  create(host: ConnectedHost, name: string, greeting: string): Promise<string>
  shown(uid: string): Promise<ClusterShown>
  /** The condition of what is wanted. */
  wanted(uid: string): Promise<Condition | undefined>
  /** Waits until the platform shows this of the last change. */
  untilWanted(uid: string, reason: string): Promise<Condition>
  /** Waits until the platform has forgotten the cluster. */
  untilForgotten(uid: string): Promise<void>
  /** The wire between the platform and the first host. */
  setWire(isUp: boolean): Promise<void>
  /** Ends all connections of the second host with the platform; it can open others. */
  cutRelay(): void
  unplug(): Promise<void>
}

/** Boots all, connects the hosts and imports the profile. */
export async function bootPlatformPlant(count: number): Promise<PlatformPlant> {
  const folder = await mkdtemp(join(tmpdir(), 'platform-plant-'))
  const booted: Host[] = []
  const relays: Relay[] = []
  const unplug = async () => {
    for (const each of relays) each.stop()
    await Promise.all(booted.map((each) => each.unplug()))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const platform = await bootEdgeplatform({ lower: 'minbase', wire: false })
    booted.push(platform)

    async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
      const { status, text } = await platform.asRoot(method, path, body)
      expect(status, text).toBeLessThan(300)
      return (text === '' || text === 'null' ? undefined : JSON.parse(text)) as T
    }

    const hosts: ConnectedHost[] = []
    for (let at = 0; at < count; at++) {
      const plant = await bootClusterHost()
      booted.push(plant.host)
      if (at === 0) await layCable(plant.host, platform)
      else relays.push(await layRelay(plant.host, platform, join(folder, `relay-${at}`)))
      hosts.push(await connected(plant, platform, ask))
    }
    await writePlant(join(folder, 'plant'), hosts[0]!.kit)
    await cp(join(folder, 'plant'), `/proc/${platform.leader}/root/root/plant`, { recursive: true })
    await platform.sh('for pack in /root/plant/packs/*/; do edgeplatformctl pack upload "$pack"; done')
    const imported = await platform.output([
      'edgeplatformctl',
      'profiles',
      'import',
      '/root/plant/profile.json',
    ])
    const profileUid = imported.trim()

    const entity = ({ edgeHostUid: hostUid }: ConnectedHost, name: string, greeting: string) => ({
      metadata: { name },
      spec: {
        cloudConfig: {},
        machinepoolconfig: [{ cloudConfig: { edgeHosts: [{ hostUid }] }, poolConfig: {} }],
        profiles: [
          {
            uid: profileUid,
            variables: [
              { name: 'greeting', value: greeting },
              { name: 'token', value: sensitiveValue },
            ],
          },
        ],
      },
    })
    const shown = (uid: string) => ask<ClusterShown>('GET', `/v1/spectroclusters/${uid}`)
    const conditionOf = ({ status }: ClusterShown) => status.conditions.find(({ type }) => type === 'Wanted')
    return {
      ...{ platform, hosts, profileUid, ask, entity, shown, unplug },
      async create(host, name, greeting) {
        const body = entity(host, name, greeting)
        return (await ask<{ uid: string }>('POST', '/v1/spectroclusters/edge-native', body)).uid
      },
      wanted: async (uid) => conditionOf(await shown(uid)),
      untilWanted: (uid, reason) =>
        eventually(async () => {
          const cluster = await shown(uid)
          const found = conditionOf(cluster)
          if (found?.reason !== reason || found.observedGeneration !== cluster.spec.number)
            throw new Error(JSON.stringify(found))
          return found
        }, comesMs),
      untilForgotten: (uid) =>
        eventually(async () => {
          expect((await platform.asRoot('GET', `/v1/spectroclusters/${uid}`)).status).toBe(404)
        }, comesMs),
      cutRelay() {
        relays[0]?.stop()
        relays[0]?.start()
      },
      async setWire(isUp) {
        await inNamespace(hosts[0]!.host.clientNamespace(), 'link', 'set', 'platform', isUp ? 'up' : 'down')
      },
    }
  } catch (error) {
    await unplug()
    throw error
  }
}

const inNamespace = (pid: number, ...args: readonly string[]) =>
  output('nsenter', ['-t', String(pid), '-n', 'ip', ...args])

/** A cable from the platform, which stands on a Debian without ip(8), to the switch of a host. With its address it gets its certificate. */
async function layCable(host: ClusterHost['host'], platform: Edgeplatform): Promise<void> {
  const inSwitch = host.clientNamespace()
  await inNamespace(
    inSwitch,
    ...['link', 'add', 'platform', 'type', 'veth', 'peer', 'name', 'host0'],
    ...['netns', String(platform.leader)],
  )
  await inNamespace(inSwitch, 'link', 'set', 'platform', 'master', 'edge0', 'up')
  await inNamespace(platform.leader, 'address', 'add', `${platformAddress}/16`, 'dev', 'host0')
  await inNamespace(platform.leader, 'link', 'set', 'host0', 'up')
  await platform.write('/etc/edgeplatform/config.d/10-site.yaml', `platform: {hostName: ${platformName}}\n`)
  await platform.output(['systemctl', 'restart', 'edgeplatformd'])
  await platform.trust()
}

interface Relay {
  start(): void
  /** Ends its connections too. */
  stop(): void
}

/** All hosts have the same addresses, each behind a switch of its own: further ones reach the platform through a socket. */
async function layRelay(host: ClusterHost['host'], platform: Edgeplatform, socket: string): Promise<Relay> {
  const inSwitch = host.clientNamespace()
  await inNamespace(inSwitch, 'address', 'add', `${platformAddress}/32`, 'dev', 'edge0')
  const groups: number[] = []
  const socat = (pid: number, from: string, to: string) => {
    const args = ['-t', String(pid), '-n', 'setpriv', '--pdeathsig', 'KILL', 'socat', from, to]
    const { pid: group } = spawn('nsenter', args, { stdio: 'ignore', detached: true })
    if (group === undefined) throw new Error('nsenter cannot be started')
    groups.push(group)
  }
  const relay: Relay = {
    start() {
      socat(platform.leader, `UNIX-LISTEN:${socket},fork,unlink-early`, 'TCP:127.0.0.1:443')
      socat(
        inSwitch,
        `TCP-LISTEN:443,bind=${platformAddress},fork,reuseaddr`,
        `UNIX-CONNECT:${socket},retry=20,interval=0.1`,
      )
    },
    // A fork of socat has the group of the first.
    stop() {
      for (const group of groups.splice(0)) process.kill(-group, 'SIGKILL')
    },
  }
  relay.start()
  return relay
}

async function connected(
  plant: ClusterHost,
  platform: Edgeplatform,
  ask: PlatformPlant['ask'],
): Promise<ConnectedHost> {
  const { host } = plant
  const known = await listHosts(ask)
  await host.sh('echo "$1 $2" >> /etc/hosts', platformAddress, platformName)
  const name = `hall-${known.length + 1}`
  // All are booted on one machine, whose id they would have.
  await host.configure('identity', `host: {id: ${name}}\n`)
  const token = (await platform.output(['edgeplatformctl', 'token', 'create', name])).trim()
  await host.write('/root/token', `${token}\n`, 0o600)
  await host.write('/root/ca.pem', await platform.read('/var/lib/edgeplatform/tls/certificate.pem'))
  const connect = async () => {
    await host.output([
      ...['edgehostctl', 'platform', 'connect', `https://${platformName}`],
      ...['--token-file', '/root/token', '--ca-file', '/root/ca.pem'],
    ])
  }
  await connect()
  const edgeHostUid = (await listHosts(ask)).find((uid) => !known.includes(uid))
  if (edgeHostUid === undefined) throw new Error('the platform does not list the host that has connected')
  return { ...plant, edgeHostUid, connect }
}

async function listHosts(ask: PlatformPlant['ask']): Promise<readonly string[]> {
  const { items } = await ask<{ items: { metadata: { uid: string } }[] }>('GET', '/v1/edgehosts')
  return items.map(({ metadata }) => metadata.uid)
}
