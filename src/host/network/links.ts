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
  /** Has a name that container engines and network plugins give, and nothing of hardware is under it. */
  readonly isOfPods: boolean
}

// Host ends that container engines and network plugins make, the bridges among them.
const namesOfPods =
  /^(docker\d|br-[0-9a-f]{12}$|cni|podman|nerdctl|cbr\d|kube-|flannel|cali|tunl|vxlan|wireguard\.cali|cilium|lxc|weave|antrea-|ovn-k8s|nodelocaldns|virbr|veth)/
const composedTypes = new Set(['bond', 'bridge', 'vlan'])
// <linux/if_arp.h>: a CAN bus is no network an address could be given on.
const arphrdCan = '280'

/**
 * Reads /sys/class/net, without loopback.
 * @param wanted names that are listed also where they belong to pods; others of those are left out
 */
export async function readLinks(files: HostFiles, wanted: ReadonlySet<string>): Promise<readonly Link[]> {
  const links: Link[] = []
  for (const [count, name] of (await files.names('/sys/class/net')).entries()) {
    // Kernel files are read in place: with hundreds of interfaces others must have their turn in between.
    if (count % 16 === 15) await turn()
    const link = name === 'lo' ? undefined : await readLink(files, name, wanted)
    if (link) links.push(link)
  }
  return links.sort((a, b) => a.index - b.index)
}

/** undefined for what is no interface, for example the file bonding_masters, and for what is of pods and not wanted. */
async function readLink(
  files: HostFiles,
  name: string,
  wanted: ReadonlySet<string>,
): Promise<Link | undefined> {
  const path = await files.link(`/sys/class/net/${name}`)
  if (path === undefined || basename(path) !== name) return undefined
  // A name alone hides nothing: a card may be called docker7, and a bridge to the plant network br-0123456789ab.
  const isOfPods = namesOfPods.test(name) && isVirtual(path) && !(await hasHardwarePort(files, path))
  // A Kubernetes node has hundreds that are not worth a further look.
  if (isOfPods && !wanted.has(name)) return undefined
  const event = parseAssignments((await files.text(`${path}/uevent`)) ?? '')
  const kind = await kindOf(files, path, event.get('DEVTYPE'))
  return { name, path, index: Number(event.get('IFINDEX')), kind, isOfPods }
}

const isVirtual = (path: string): boolean => path.startsWith('/sys/devices/virtual/')

/** Whether a bridge leads out of this host: to hardware, or to a bond or VLAN, which stand on it. */
async function hasHardwarePort(files: HostFiles, path: string): Promise<boolean> {
  for (const port of await files.names(`${path}/brif`)) {
    const ofPort = await files.link(`/sys/class/net/${port}`)
    if (ofPort === undefined) continue
    if (!isVirtual(ofPort)) return true
    const type = parseAssignments((await files.text(`${ofPort}/uevent`)) ?? '').get('DEVTYPE')
    if (type === 'bond' || type === 'vlan') return true
  }
  return false
}

/** Whether another interface is behind it, as behind the end of a veth pair and a macvlan: sysfs-class-net (ABI). */
export async function isEndOfAnother(files: HostFiles, link: Link): Promise<boolean> {
  const behind = Number(await files.text(`${link.path}/iflink`))
  return behind > 0 && behind !== link.index
}

async function kindOf(files: HostFiles, path: string, type: string | undefined): Promise<Link['kind']> {
  if (type !== undefined && composedTypes.has(type)) return 'composed'
  if (type === 'wlan') return 'hardware'
  if (isVirtual(path)) return 'virtual'
  return (await files.text(`${path}/type`))?.trim() === arphrdCan ? 'virtual' : 'hardware'
}

/** The MAC address; undefined for interfaces that have none, such as tunnels. */
export async function readMac(files: HostFiles, link: Link): Promise<string | undefined> {
  const mac = (await files.text(`${link.path}/address`))?.trim()
  return mac && !/^[0:]*$/.test(mac) ? mac : undefined
}
