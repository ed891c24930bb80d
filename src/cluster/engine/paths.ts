import { join } from 'node:path'

/** The units of the engine. */
export const units = { containerd: 'edgehostd-containerd.service', kubelet: 'kubelet.service' } as const

/** Socket and state of our containerd; on a tmpfs. */
export const containerdState = '/run/edgehostd-containerd'
export const containerdSocket = `${containerdState}/containerd.sock`
/** State of runc for our containers; by default runc shares one with the containerd of the host. */
export const runcState = `${containerdState}/runc`
/** The socket as Kubernetes names it. */
export const criSocket = `unix://${containerdSocket}`

/** What the kubectl of `edgehostctl cluster kubectl` keeps of the API on the host: in the runtime folder of the daemon, which goes with it. */
export const kubectlCache = '/run/edgehostd/kubectl'

/** Folder of systemd for units of an administrator, systemd.unit(5). */
export const unitFolder = '/etc/systemd/system'

/** The first line of our units. */
export const unitHeading = '# Written by edgehostd.\n'

/** A path in a command line of a unit, systemd.service(5). */
export const pathInUnit = (path: string) => `"${path.replace(/["\\]/g, '\\$&').replace(/[%$]/g, '$&$&')}"`

/** Path by which a program in use is started, whatever its version. @param folder of the programs of the cluster */
export const currentProgram = (folder: string, name: string) => join(folder, name, 'current', name)

/**
 * The kubectl of the cluster, for a program that does not know where the state folder is: beside the kubelet.
 * @param unit the text of the kubelet's unit
 * @returns undefined where that is not the unit of our cluster
 */
export function kubectlOf(unit: string): string | undefined {
  const [, path = ''] = /^ExecStart="((?:[^"\\]|\\.)*)"/m.exec(unit) ?? []
  const kubelet = path.replace(/([%$])\1/g, '$1').replace(/\\(.)/g, '$1')
  const folder = kubelet.slice(0, -'/kubelet/current/kubelet'.length)
  const isOurs =
    unit.startsWith(unitHeading) && kubelet !== '' && kubelet === currentProgram(folder, 'kubelet')
  return isOurs ? currentProgram(folder, 'kubectl') : undefined
}

/** Plugin folder of the CNI of a cluster and of containerd, Debian's folder of them, and the folder of network configurations. */
export const cniFolders = {
  programs: '/opt/cni/bin',
  debian: '/usr/lib/cni',
  configs: '/etc/cni/net.d',
} as const

/** Files that kubeadm makes, and the folders that it takes by itself. */
export const kubernetesFiles = {
  folder: '/etc/kubernetes',
  adminConfig: '/etc/kubernetes/admin.conf',
  kubeletConfig: '/etc/kubernetes/kubelet.conf',
  manifests: '/etc/kubernetes/manifests',
  certificates: '/etc/kubernetes/pki',
  etcd: '/var/lib/etcd',
} as const

/** Files and folders of the cluster below the state folder. */
export interface ClusterPaths {
  readonly folder: string
  /** The host before the cluster, JSON; there from the first step of a cluster to the last one of its deletion. */
  readonly hostRecord: string
  /** Places of the NTP servers and the SSH keys of the cluster on this host, JSON; absent where nothing was placed. */
  readonly ntpServers: string
  readonly sshKeys: string
  readonly programs: string
  /** Root of our containerd. */
  readonly containerd: string
  readonly containerdConfig: string
  /** Folder with a folder of each registry. */
  readonly registries: string
  /** Login to a registry of others, JSON; not there without one. */
  readonly registryLogin: string
  readonly kubeadm: string
  /** File for `kubeadm init`. */
  readonly kubeadmConfig: string
  /** Images that Kubernetes itself needs, JSON. */
  readonly kubernetesImages: string
  /** Note of the preparation, JSON. */
  readonly prepared: string
  /** Progress of the initialisation, JSON. */
  readonly initialisation: string
  /** Applied configuration, JSON. */
  readonly configured: string
  /** Files of a dry run of kubeadm. */
  readonly rendered: string
  /** Folder of an unfinished renewal of certificates: the former files, and the remaining work. */
  readonly renewal: string
  /** Former content of the folder of CNI plugins, JSON. */
  readonly cniRecord: string
  /** The version of Kubernetes that runs, JSON; a cluster of 0.1.0 or before has none. */
  readonly version: string
  /** A started change of the version that is neither good nor taken back, JSON. */
  readonly change: string
  /** Files of the next version: they do not replace running ones. */
  readonly next: NextPaths
  /** Folder with a folder of each copy of Kubernetes to go back to. */
  readonly copies: string
}

/** Files of the next version of Kubernetes. */
export interface NextPaths {
  readonly folder: string
  /** File for `kubeadm init` of the next version. */
  readonly kubeadmConfig: string
  /** UpgradeConfiguration of kubeadm. */
  readonly upgradeConfig: string
  /** Folders of its programs, JSON. */
  readonly programs: string
}

export function clusterPaths(stateDirectory: string): ClusterPaths {
  const folder = join(stateDirectory, 'cluster')
  const file = (...names: string[]) => join(folder, ...names)
  return {
    folder,
    hostRecord: file('host-record.json'),
    ntpServers: file('ntp-servers.json'),
    sshKeys: file('ssh-keys.json'),
    programs: file('programs'),
    containerd: file('containerd'),
    containerdConfig: file('containerd-config', 'config.toml'),
    registries: file('containerd-config', 'certs.d'),
    registryLogin: file('containerd-config', 'registry-login.json'),
    kubeadm: file('kubeadm'),
    kubeadmConfig: file('kubeadm', 'init.yaml'),
    kubernetesImages: file('kubeadm', 'images.json'),
    prepared: file('kubeadm', 'prepared.json'),
    initialisation: file('kubeadm', 'initialisation.json'),
    configured: file('kubeadm', 'configured.json'),
    rendered: file('kubeadm', 'rendered'),
    renewal: file('kubeadm', 'renewal'),
    cniRecord: file('kubeadm', 'cni-record.json'),
    version: file('kubeadm', 'version.json'),
    change: file('kubeadm', 'change.json'),
    next: {
      folder: file('kubeadm', 'next'),
      kubeadmConfig: file('kubeadm', 'next', 'init.yaml'),
      upgradeConfig: file('kubeadm', 'next', 'upgrade.yaml'),
      programs: file('kubeadm', 'next', 'programs.json'),
    },
    copies: file('copies'),
  }
}
