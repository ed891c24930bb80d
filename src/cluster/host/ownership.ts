import { isWithin, parseSubnet, subnetOfOne, type Subnet } from '../../base/subnet.ts'
import { commentsOf, networksOf } from './host-state.ts'

// Names that Kubernetes and network plugins give on a host. A name alone decides nothing: only additions since the record are removed.

/** Chains of kubelet and kube-proxy; of the plugins bridge, portmap and firewall; of flannel, Calico, Cilium, Weave, Antrea, kube-router, OVN. */
export const isClusterChain = (name: string): boolean =>
  /^(KUBE-|CNI-|FLANNEL-|cali-|CILIUM_|OLD_CILIUM_|WEAVE|ANTREA-|OVN-KUBE-)/.test(name)

/**
 * Interfaces of network plugins and kube-proxy. Ends of pods called veth… are not among them: they go with the network namespace of
 * their pod, and one that stays belongs to a container of another runtime.
 */
export const isClusterLink = (name: string): boolean =>
  /^(cni\d|cni-|cbr\d|flannel|cali|(vxlan|vxlan-v6)\.calico|(wireguard|wg-v6)\.cali|tunl0$|cilium_|lxc([0-9a-f]{12}|_health)$|kube-|nodelocaldns|weave|vethwe|antrea-|genev_sys_|ovn-k8s)/.test(
    name,
  )

/** Interfaces that come with a module of the kernel and cannot be deleted while it is loaded. */
export const isModuleLink = (name: string): boolean => name === 'tunl0'

/** Tables of nftables of kube-proxy and of network plugins, as `FAMILY NAME`. */
export const isClusterNftTable = (table: string): boolean =>
  / (kube-[a-z-]+|flannel-(ipv4|ipv6)|calico|cni_plugins_masquerade|cni_hostport|kindnet[a-z-]*|cilium[a-z_-]*|ovn-kubernetes)$/.test(
    table,
  )

export const isClusterIpSet = (name: string): boolean =>
  /^(KUBE-|cali\d|weave-|cilium_|ANTREA-|FLANNEL-)/.test(name)

/** Network namespaces that containerd makes for pods (pkg/netns of containerd). */
export const isClusterNamespace = (name: string): boolean => /^cni-[0-9a-f-]{36}$/.test(name)

export const isClusterUnit = (name: string): boolean => /(^|\/)kubelet\.service(\.d)?(\/|$)/.test(name)

const clusterComment =
  /^(cali:|cilium|flanneld|kube-|kubernetes |CNI |cni|weave|Antrea|antrea|name: \\?".*\\?" id: )/

/**
 * Whether a new rule of iptables belongs to Kubernetes or its network, by its comment or its match. Rules that jump to chains of the
 * cluster belong to it too.
 * @param networks of pods and services
 */
export function isClusterRule(rule: string, networks: readonly Subnet[]): boolean {
  if (commentsOf(rule).some((comment) => clusterComment.test(comment))) return true
  const matched = networksOf(rule)
  return matched.length > 0 && matched.every((each) => isClusterNetwork(each, networks))
}

/** Tables of routes that Cilium uses for its proxy (pkg/datapath/linux/linux_defaults). */
const clusterRouteTables = new Set(['2004', '2005'])

/** Whether a policy rule, as `ip rule` prints it, belongs to the network of the cluster. */
export function isClusterPolicy(policy: string, networks: readonly Subnet[]): boolean {
  if (clusterRouteTables.has(/ lookup (\S+)/.exec(policy)?.[1] ?? '')) return true
  const named = [...policy.matchAll(/\b(?:from|to) (\S+)/g)].map(([, network = '']) => network)
  return named.some((each) => isClusterNetwork(each, networks))
}

/** Whether a route, as `ip route` prints it, leads to pods or services. */
export function isClusterRoute(route: string, networks: readonly Subnet[]): boolean {
  const destination =
    /^(?:(?:unicast|blackhole|unreachable|prohibit|throw|local) )?(\S+)/.exec(route)?.[1] ?? ''
  return isClusterNetwork(destination, networks)
}

function isClusterNetwork(text: string, networks: readonly Subnet[]): boolean {
  const subnet = parseSubnet(text.includes('/') ? text : `${text}/${subnetOfOne(text).prefixLength}`)
  return subnet !== undefined && networks.some((network) => isWithin(subnet, network))
}
