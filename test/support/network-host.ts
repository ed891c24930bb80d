import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHostFiles, type HostFiles } from '../../src/host/files.ts'
import { readLinks, type NetworkReading } from '../../src/network/links/links.ts'
import type { CommandRunner } from '../../src/system/runner.ts'

/** Backends whose output and files were captured on booted Debian 12 hosts with three NICs, each with the same network. */
export type CapturedBackend = 'networkd' | 'netplan' | 'networkmanager' | 'ifupdown'

const fixtures = join(import.meta.dirname, '../fixtures/network')
const services: Readonly<Record<CapturedBackend, string>> = {
  networkd: 'systemd-networkd.service',
  netplan: 'systemd-networkd.service',
  networkmanager: 'NetworkManager.service',
  ifupdown: 'networking.service',
}

export interface CapturedHost {
  readonly files: HostFiles
  readonly runner: CommandRunner
  /** No other device has any address. */
  readonly findDevice: () => Promise<undefined>
}

export interface Changes {
  /** Files beside those that were captured, by path; undefined takes one away, and `masked` is a link to /dev/null. */
  readonly files?: Readonly<Record<string, string | undefined>>
  /** Replaces the output of a program; an error is one that ends with exit code 1. */
  readonly output?: Readonly<Record<string, (text: string) => string | Error>>
}

/** A captured host: its tools answer as they did, and its files are in the fixture. */
export function capturedHost(
  backend: CapturedBackend,
  { files = {}, output = {} }: Changes = {},
): CapturedHost {
  const folder = join(fixtures, backend)
  const base = createHostFiles(join(folder, 'root'))
  const captured = (name: string) => readFileSync(join(folder, name), 'utf8')
  const links = JSON.parse(captured('addresses.json')) as {
    ifname: string
    ifindex: number
    link_index?: number
  }[]
  const found = (path: string): string | undefined => {
    const [, name, file] = /^\/sys\/devices\/virtual\/net\/([^/]+)\/(\w+)$/.exec(path) ?? []
    const link = links.find(({ ifname }) => ifname === name)
    if (link !== undefined && file === 'uevent') return `INTERFACE=${link.ifname}\nIFINDEX=${link.ifindex}\n`
    if (link !== undefined && file === 'iflink') return `${link.link_index ?? link.ifindex}\n`
    if (path === `/sys/fs/cgroup/system.slice/${services[backend]}/cgroup.events`) return 'populated 1\n'
    return undefined
  }
  const added = Object.keys(files).filter((path) => files[path] !== undefined)
  const programs: Readonly<Record<string, string>> = {
    'ip -json -details address show': 'addresses.json',
    'ip -json -details route show table all': 'routes.json',
    'networkctl --json=short': 'networkctl.json',
    'nmcli --terse --fields DEVICE,TYPE,STATE,CON-UUID device': 'devices.txt',
    'nmcli --terse --fields NAME,UUID,TYPE,DEVICE,FILENAME connection': 'connections.txt',
    'ifquery --state': 'ifstate.txt',
  }
  return {
    findDevice: () => Promise.resolve(undefined),
    files: {
      async text(path, ...more) {
        if (path in files) return files[path] === 'masked' ? '' : files[path]
        return found(path) ?? base.text(path, ...more)
      },
      async names(path) {
        if (path === '/sys/class/net') return links.map(({ ifname }) => ifname)
        const inside = added
          .filter((each) => each.startsWith(`${path}/`))
          .map((each) => each.slice(path.length + 1).split('/')[0] ?? '')
        const gone = Object.keys(files).filter((each) => files[each] === undefined)
        const names = (await base.names(path)).filter((name) => !gone.includes(`${path}/${name}`))
        return [...new Set([...names, ...inside])].sort()
      },
      async link(path) {
        if (files[path] === 'masked') return '/dev/null'
        const name = /^\/sys\/class\/net\/([^/]+)$/.exec(path)?.[1]
        return name === undefined ? base.link(path) : `/sys/devices/virtual/net/${name}`
      },
    },
    runner: {
      async run(program, args) {
        const line = [program, ...args].join(' ')
        const isDns = program === 'busctl' && line.includes('DnsManager')
        const name = isDns ? 'dns-manager.json' : programs[line]
        const isThere = name !== undefined && existsSync(join(folder, name))
        const text = isThere ? captured(name) : new Error(`${program}: not on this host`)
        const changed = output[line] && !(text instanceof Error) ? output[line](text) : text
        return changed instanceof Error
          ? { exitCode: 1, stdout: '', stderr: changed.message }
          : { exitCode: 0, stdout: changed, stderr: '' }
      },
    },
  }
}

/** The network of a captured host. */
export const captured = (backend: CapturedBackend, changes?: Changes): Promise<NetworkReading> =>
  readLinks(capturedHost(backend, changes))

/** A change of the output of `networkctl --json=short`. */
export const changeNetworkctl =
  (change: (links: Record<string, unknown>[]) => void) =>
  (text: string): string => {
    const reply = JSON.parse(text) as { Interfaces: Record<string, unknown>[] }
    change(reply.Interfaces)
    return JSON.stringify(reply)
  }

/** The captured host of networkd with a bond on its second NIC, and a VLAN on that; the kernel of the capture had neither. */
export const hostWithBond = (): CapturedHost =>
  capturedHost('networkd', {
    files: {
      // What a change of networkd needs.
      '/usr/bin/arping': '',
      '/run/dbus/system_bus_socket': '',
      '/etc/systemd/network/50-bond0.netdev':
        '[NetDev]\nName=bond0\nKind=bond\n[Bond]\nMode=active-backup\nMIIMonitorSec=0.1\n',
      '/etc/systemd/network/50-bond0.network':
        '[Match]\nName=bond0\n[Network]\nDHCP=ipv4\nVLAN=bond0.7\n[DHCPv4]\nRouteMetric=300\n',
      '/etc/systemd/network/50-vlan.netdev': '[NetDev]\nName=bond0.7\nKind=vlan\n[VLAN]\nId=7\n',
      '/etc/systemd/network/50-vlan.network': '[Match]\nName=bond0.7\n[Network]\nAddress=198.51.100.7/25\n',
      '/etc/systemd/network/30-second.network': '[Match]\nName=eth1\n[Network]\nBond=bond0\n',
    },
    output: {
      'ip -json -details address show': (text) => JSON.stringify(withBond(JSON.parse(text) as KernelEntry[])),
      'ip -json -details route show table all': (text) => text.replaceAll('"dev":"eth1"', '"dev":"bond0"'),
      'networkctl --json=short': changeNetworkctl((links) => {
        for (const [name, file] of [
          ['bond0', 'bond0'],
          ['bond0.7', 'vlan'],
        ])
          links.push({
            Name: name,
            AdministrativeState: 'configured',
            NetworkFile: `/etc/systemd/network/50-${file}.network`,
          })
      }),
    },
  })

interface KernelEntry {
  readonly ifname: string
  readonly addr_info: readonly { readonly local: string; readonly label?: string }[]
}

function withBond(links: readonly KernelEntry[]): readonly object[] {
  const member = links.find(({ ifname }) => ifname === 'eth1')
  if (member === undefined) throw new Error('the capture has no eth1')
  const { addr_info: addresses, ...same } = member
  const data = { mode: 'active-backup', miimon: 100, xmit_hash_policy: 'layer2', ad_lacp_rate: 'slow' }
  const address = { family: 'inet', local: '198.51.100.7', prefixlen: 25, scope: 'global' }
  return [
    ...links.filter((link) => link !== member),
    {
      ...same,
      master: 'bond0',
      linkinfo: { info_kind: 'veth', info_slave_kind: 'bond', info_slave_data: { state: 'ACTIVE' } },
      addr_info: [],
    },
    {
      ...same,
      ...{ ifindex: 6, link_index: undefined, ifname: 'bond0', addr_info: addresses },
      linkinfo: { info_kind: 'bond', info_data: data },
    },
    {
      ...same,
      ...{ ifindex: 7, link_index: undefined, ifname: 'bond0.7', link: 'bond0' },
      linkinfo: { info_kind: 'vlan', info_data: { protocol: '802.1Q', id: 7 } },
      addr_info: [{ ...address, valid_life_time: 4_294_967_295, preferred_life_time: 4_294_967_295 }],
    },
  ]
}
