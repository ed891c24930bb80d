import type { Host } from '../../e2e/host/host.ts'

// The output of the machine's own tools, in the shape of the reply.

interface Block {
  readonly type: string
  readonly tran: string | null
  readonly subsystems: string
  readonly size: number
  readonly 'maj:min': string
  readonly children?: readonly Block[]
}

interface Mount {
  readonly target: string
  readonly fsroot: string
  readonly fstype: string
  readonly 'maj:min': string
}

const gib = 1_024 ** 3
const pods = '/var/lib/kubelet/pods/'

/** Disks by `lsblk`, their mounts by `findmnt`, the space of these by `df`. */
export async function disksOf(host: Host) {
  const { blockdevices } = JSON.parse(await host.output(['lsblk', '-J', '-b', '-O'])) as {
    blockdevices: Block[]
  }
  const { filesystems } = JSON.parse(
    await host.output(['findmnt', '-J', '-l', '-o', 'TARGET,FSROOT,FSTYPE,MAJ:MIN']),
  ) as { filesystems: Mount[] }
  const spaces = await spacesOf(host)
  return blockdevices
    .filter(({ type }) => type === 'disk')
    .map((disk) => {
      const devices = new Set(devicesUnder(disk))
      const whole = filesystems.filter(
        (mount) => devices.has(mount['maj:min']) && mount.fsroot === '/' && !mount.target.startsWith(pods),
      )
      // The first of a device is the mount, the others are bind mounts of it.
      const once = [...new Map(whole.toReversed().map((mount) => [mount['maj:min'], mount])).values()]
      const partitions = once
        .sort((a, b) => (a.target < b.target ? -1 : 1))
        .map(({ target, fstype }) => ({ mountPoint: target, fileSystemType: fstype, ...spaces.get(target) }))
      return { controller: busOf(disk), size: Math.round(disk.size / gib), partitions }
    })
}

const devicesUnder = (block: Block): string[] => [
  block['maj:min'],
  ...(block.children ?? []).flatMap(devicesUnder),
]

function busOf({ tran, subsystems }: Block): string {
  if (subsystems.startsWith('block:mmc')) return 'MMC'
  if (subsystems.startsWith('block:virtio')) return 'VIRTIO'
  return tran === null || tran === 'sas' ? 'SCSI' : tran.toUpperCase()
}

async function spacesOf(host: Host) {
  // df fails for file systems that cannot be read, such as an automount, and shows the others.
  const { stdout } = await host.run(['df', '-B1', '--all', '--output=size,used,avail,target'])
  const lines = stdout.trim().split('\n')
  return new Map(
    lines.slice(1).map((line) => {
      const [size, used, free, target] = line.trim().split(/\s+/)
      const [totalSpace, usedSpace, freeSpace] = [size, used, free].map((each) =>
        Math.round(Number(each) / gib),
      )
      return [target!, { totalSpace, usedSpace, freeSpace }]
    }),
  )
}

interface Link {
  readonly ifname: string
  readonly link_type: string
  readonly address: string
  readonly linkinfo?: { readonly info_kind?: string }
  readonly addr_info: readonly {
    readonly family: string
    readonly scope: string
    readonly local: string
    readonly prefixlen: number
    readonly secondary?: boolean
  }[]
}

interface Route {
  readonly dev: string
  readonly gateway?: string
  readonly metric?: number
}

const shownKinds = new Set([undefined, 'bond', 'bridge', 'vlan'])
// To the kernel the interfaces of pods look like those of an administrator.
const podLinks = new Set(['cni0', 'cali11a', 'lxc22b', 'kube-ipvs0'])

/** Interfaces by `ip address`, their gateways and the default by `ip route`. */
export async function nicsOf(host: Host) {
  const links = JSON.parse(await host.output(['ip', '-j', '-d', 'address'])) as Link[]
  const routes4 = await defaultRoutes(host, '-4')
  const routes6 = await defaultRoutes(host, '-6')
  const chosen = (routes4[0] ?? routes6[0])?.dev
  return links
    .filter(({ ifname, link_type, linkinfo, addr_info }) => {
      // A member of a bond or bridge names it too, but has no kind of its own.
      const isShown = shownKinds.has(linkinfo?.info_kind) || addr_info.some(({ scope }) => scope === 'global')
      return link_type === 'ether' && isShown && !podLinks.has(ifname)
    })
    .map(({ ifname, address, addr_info }) => {
      const four = addr_info.find(({ family, secondary }) => family === 'inet' && !secondary)
      const six = addr_info.find(({ family, scope }) => family === 'inet6' && scope === 'global')
      const routes = !four && six ? routes6 : [...routes4, ...routes6]
      const gateway = routes.find(({ dev }) => dev === ifname)?.gateway
      return {
        nicName: ifname,
        macAddr: address,
        isDefault: ifname === chosen,
        ...(gateway === undefined ? {} : { gateway }),
        ...(four ? { ip: four.local, subnet: dotted(four.prefixlen) } : {}),
        ...(!four && six ? { ip: six.local, subnet: String(six.prefixlen) } : {}),
      }
    })
}

/** Name servers by link, as `resolvectl` shows them. */
export async function serversOf(host: Host, links: readonly { readonly nicName: string }[]) {
  const lines = (await host.output(['resolvectl', 'dns'])).split('\n')
  return links.map(({ nicName }) => {
    const line = lines.find((each) => each.includes(`(${nicName}):`)) ?? ''
    return { nicName, dns: line.split('):')[1]?.trim().split(' ').filter(Boolean) ?? [] }
  })
}

async function defaultRoutes(host: Host, family: string): Promise<Route[]> {
  const routes = JSON.parse(await host.output(['ip', '-j', family, 'route', 'show', 'default'])) as Route[]
  return routes.sort((a, b) => (a.metric ?? 0) - (b.metric ?? 0))
}

const dotted = (length: number) =>
  [24, 16, 8, 0].map((shift) => ((length === 0 ? 0 : ~0 << (32 - length)) >>> shift) & 255).join('.')
