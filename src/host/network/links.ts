import { basename } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { HostFiles } from '../files.ts'
import { parseAssignments } from '../operating-system.ts'

/** A network interface as the kernel lists it. */
export interface Link {
  readonly name: string
  /** Its folder under /sys/devices. */
  readonly path: string
  readonly index: number
  /** Composed: bond, bridge, VLAN. Virtual: veth, tap, tunnel, dummy and whatever else has no hardware. */
  readonly kind: 'hardware' | 'composed' | 'virtual'
}

// Host ends that container engines and network plugins make, the bridges among them.
const belongsToPods =
  /^(docker\d|br-[0-9a-f]{12}$|cni|podman|nerdctl|cbr\d|kube-|flannel|cali|tunl|vxlan|cilium|lxc|weave|nodelocaldns|virbr|veth)/
const composedTypes = new Set(['bond', 'bridge', 'vlan'])
// <linux/if_arp.h>: a CAN bus is no network an address could be given on.
const arphrdCan = '280'

/**
 * Reads /sys/class/net, without loopback and what belongs to pods.
 * @param wanted names that are listed whatever they look like
 */
export async function readLinks(files: HostFiles, wanted: ReadonlySet<string>): Promise<readonly Link[]> {
  // A Kubernetes node has hundreds that are not worth a look: their names come first.
  const names = (await files.names('/sys/class/net')).filter(
    (name) => name !== 'lo' && (wanted.has(name) || !belongsToPods.test(name)),
  )
  const links: Link[] = []
  for (const [count, name] of names.entries()) {
    // Kernel files are read in place: with hundreds of interfaces others must have their turn in between.
    if (count % 16 === 15) await turn()
    const link = await readLink(files, name)
    if (link) links.push(link)
  }
  return links.sort((a, b) => a.index - b.index)
}

/** undefined for what is no interface, for example the file bonding_masters. */
async function readLink(files: HostFiles, name: string): Promise<Link | undefined> {
  const path = await files.link(`/sys/class/net/${name}`)
  if (path === undefined || basename(path) !== name) return undefined
  const event = parseAssignments((await files.text(`${path}/uevent`)) ?? '')
  const kind = await kindOf(files, path, event.get('DEVTYPE'))
  return { name, path, index: Number(event.get('IFINDEX')), kind }
}

async function kindOf(files: HostFiles, path: string, type: string | undefined): Promise<Link['kind']> {
  if (type !== undefined && composedTypes.has(type)) return 'composed'
  if (type === 'wlan') return 'hardware'
  if (path.startsWith('/sys/devices/virtual/')) return 'virtual'
  return (await files.text(`${path}/type`))?.trim() === arphrdCan ? 'virtual' : 'hardware'
}

/** The MAC address; undefined for interfaces that have none, such as tunnels. */
export async function readMac(files: HostFiles, link: Link): Promise<string | undefined> {
  const mac = (await files.text(`${link.path}/address`))?.trim()
  return mac && !/^[0:]*$/.test(mac) ? mac : undefined
}
