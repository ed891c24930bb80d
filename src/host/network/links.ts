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
  /** Composed: bond, bridge, VLAN. Virtual: veth, tap, tunnel, dummy and all others without hardware. */
  readonly kind: 'hardware' | 'composed' | 'virtual'
  /** Has a name that container engines and network plugins give, and no hardware below it. */
  readonly isOfPods: boolean
}

// Interfaces that container engines and network plugins create on the host, including bridges.
const namesOfPods =
  /^(docker\d|br-[0-9a-f]{12}$|cni|podman|nerdctl|cbr\d|kube-|flannel|cali|tunl|vxlan|wireguard\.cali|cilium|lxc|weave|antrea-|ovn-k8s|nodelocaldns|virbr|veth)/
const composedTypes = new Set(['bond', 'bridge', 'vlan'])
// <linux/if_arp.h>: a CAN bus is not a network with addresses.
const arphrdCan = '280'

/**
 * Reads /sys/class/net, without loopback.
 * @param wanted names of interfaces to list even where they belong to pods; other interfaces of pods are left out
 */
export async function readLinks(files: HostFiles, wanted: ReadonlySet<string>): Promise<readonly Link[]> {
  const links: Link[] = []
  for (const [count, name] of (await files.names('/sys/class/net')).entries()) {
    // Kernel files are read synchronously: with hundreds of interfaces, other work needs its turn in between.
    if (count % 16 === 15) await turn()
    const link = name === 'lo' ? undefined : await readLink(files, name, wanted)
    if (link) links.push(link)
  }
  return links.sort((a, b) => a.index - b.index)
}

/** undefined for an entry that is no interface, such as the file bonding_masters, and for one of pods that is not wanted. */
async function readLink(
  files: HostFiles,
  name: string,
  wanted: ReadonlySet<string>,
): Promise<Link | undefined> {
  const path = await files.link(`/sys/class/net/${name}`)
  if (path === undefined || basename(path) !== name) return undefined
  // The name alone does not decide: a card may be called docker7, and a bridge to the plant network br-0123456789ab.
  const isOfPods = namesOfPods.test(name) && isVirtual(path) && !(await hasHardwarePort(files, path))
  // A Kubernetes node has hundreds of these, so no more of their files are read.
  if (isOfPods && !wanted.has(name)) return undefined
  const event = parseAssignments((await files.text(`${path}/uevent`)) ?? '')
  const kind = await kindOf(files, path, event.get('DEVTYPE'))
  return { name, path, index: Number(event.get('IFINDEX')), kind, isOfPods }
}

const isVirtual = (path: string): boolean => path.startsWith('/sys/devices/virtual/')

/** Whether a bridge has a port that leads out of this host: hardware, or a bond or VLAN, which are based on hardware. */
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

/** Whether an interface is linked to another, as an end of a veth pair or a macvlan is: iflink in sysfs-class-net (ABI). */
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
