import { existsSync, readFileSync } from 'node:fs'

export interface KernelModule {
  readonly name: string
  /** Whether the kernel has what it brings; it may be part of the kernel itself. */
  readonly isThere: () => boolean
}

/** Modules that containerd and the networks of Kubernetes need. */
export const kernelModules: readonly KernelModule[] = [
  { name: 'overlay', isThere: () => readFileSync('/proc/filesystems', 'utf8').includes('\toverlay\n') },
  { name: 'br_netfilter', isThere: () => existsSync('/proc/sys/net/bridge') },
]

/**
 * The sysctls that kubeadm and the networks of Kubernetes ask for. A host that forwards IPv6 takes no routes from router advertisements any
 * more (`accept_ra` in the kernel's ip-sysctl), so only a cluster with IPv6 sets that.
 */
export const kernelSettings = (usesIPv6: boolean): Readonly<Record<string, string>> => ({
  'net.ipv4.ip_forward': '1',
  ...(usesIPv6 ? { 'net.ipv6.conf.all.forwarding': '1' } : {}),
  // These exist only with the module br_netfilter.
  'net.bridge.bridge-nf-call-iptables': '1',
  'net.bridge.bridge-nf-call-ip6tables': '1',
})

const heading = '# Written by edgehostd for its cluster; removed with it.\n'

/** The files that load the modules and set the sysctls at a boot, by their paths. */
export const kernelFiles = (usesIPv6: boolean): Readonly<Record<string, string>> => ({
  '/etc/modules-load.d/edgehostd-cluster.conf': `${heading}${kernelModules.map(({ name }) => name).join('\n')}\n`,
  // The dash: a sysctl that does not exist is no error, sysctl.d(5).
  '/etc/sysctl.d/90-edgehostd-cluster.conf': `${heading}${Object.entries(kernelSettings(usesIPv6))
    .map(([name, value]) => `-${name} = ${value}`)
    .join('\n')}\n`,
})
