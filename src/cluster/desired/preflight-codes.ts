import { documentPath } from '../../base/program.ts'

/**
 * Every code that a pre-flight check can report: its meaning, and what to do. docs/preflight-checks.md is made from this table; codes are
 * stable, texts may improve. The severity is the usual one; `PreflightProblem` has the actual one.
 */
export const preflightCodes = {
  // The posted configuration
  AddressInvalid: {
    severity: 'error',
    meaning: 'The address or the interface that was given for this host does not belong to this host.',
    action:
      'Leave hostAddress and nicName empty, or give an address or interface of GET /v1/edge-mgmt/edgehosts/current.',
  },
  CannotChange: {
    severity: 'error',
    meaning:
      'A cluster that runs cannot take this: another Kubernetes pack or network pack, other networks of pods and services, or another folder of etcd.',
    action: 'Build the definition with the settings of the cluster, or create another cluster.',
  },
  SettingNotApplied: {
    severity: 'warning',
    meaning:
      'NTP servers or SSH keys are stored with the cluster, but this host cannot have them; the message says why. The cluster comes without them.',
    action: 'Do what the message says: the host gets them then by itself. Or leave them empty.',
  },
  VariableInvalid: {
    severity: 'error',
    meaning: 'The value of a profile variable is missing or not valid, or the variable is unknown.',
    action:
      'Correct the value; on a host that is managed there, POST /v1/edge-mgmt/cluster/profiles/variables/validate judges values without a cluster.',
  },
  VersionSkew: {
    severity: 'error',
    meaning:
      'Kubernetes cannot go from the version that runs to this one: it is older, or more than one minor version newer.',
    action:
      'Take a definition with the next minor version, and update again when it runs. Only POST /v1/edge-mgmt/cluster/rollback leads to an older one, on a host that is managed there, while a copy of it is kept.',
  },
  // The engine
  ContainerRuntimeOutdated: {
    severity: 'warning',
    meaning: 'The version of Kubernetes does not support the containerd of this host.',
    action: 'Install containerd 2, or take an older Kubernetes pack.',
  },
  HostFileMissing: {
    severity: 'error',
    meaning:
      'The API server needs a file that is not on this host. The stages of the pack would make it; they are not run.',
    action: 'Put the file there, or remove the argument from cluster.config of the Kubernetes pack.',
  },
  KernelDefaultsDiffer: {
    severity: 'error',
    meaning:
      'The Kubernetes pack has protectKernelDefaults, with which the kubelet does not start where sysctls of the kernel are others than it expects.',
    action:
      'Write the values of the message to a file of /etc/sysctl.d and run sysctl --system, or set protectKernelDefaults to false in the pack.',
  },
  KubernetesKept: {
    severity: 'warning',
    meaning:
      'The definition has an older Kubernetes than the cluster: its packs went back after an upgrade, and Kubernetes did not. Values of the Kubernetes pack have no effect.',
    action: 'Nothing, or take a definition with the version of Kubernetes that runs.',
  },
  KubernetesConfigInvalid: {
    severity: 'error',
    meaning: 'cluster.config of the Kubernetes pack is no YAML, or kubeadm of that version refuses it.',
    action: 'Correct the values of the pack; the message comes from kubeadm.',
  },
  KubernetesVersionUnsupported: {
    severity: 'error',
    meaning: 'The version of Kubernetes has no kubeadm that reads its files in v1beta4.',
    action: 'Take a Kubernetes pack of version 1.31 or later.',
  },
  ProgramDamaged: {
    severity: 'error',
    meaning: 'A program of Kubernetes is in the content, but damaged on the disk.',
    action: 'Upload the bundle again.',
  },
  ProgramMissing: {
    severity: 'error',
    meaning: 'A program of Kubernetes is in no bundle of this host for its architecture.',
    action: 'Upload a bundle with it; edgehostctl content build --programs packs it.',
  },
  ProgramUnusable: {
    severity: 'error',
    meaning:
      'A program that reads the definition, helm or kubeadm, or one of the folder cluster.programs.directory cannot be run; the definition was not read with it.',
    action: 'See FileSystemUnusable where it is there too; otherwise correct what the message names.',
  },
  ProgramOfAnotherVersion: {
    severity: 'error',
    meaning:
      'A program of the folder cluster.programs.directory is not of the version of the Kubernetes pack.',
    action: 'Install that version, or leave cluster.programs.directory empty.',
  },
  RegistryUnusable: {
    severity: 'error',
    meaning: 'The containerd of the cluster cannot pull from the registry of this host.',
    action: 'Correct content.registry in the configuration as the message says.',
  },
  StagesNotRun: {
    severity: 'warning',
    meaning: 'The packs have stages that would make files and sysctls of the host; they are not run.',
    action: 'Make by hand what the cluster needs of them.',
  },
  // Definition and packs
  ChartInvalid: {
    severity: 'error',
    meaning:
      'A chart cannot be read, helm cannot render it with the values of its pack, or could not install what it renders.',
    action:
      'Correct the values or the chart as the message of helm says; helm template with the chart and its values shows the same.',
  },
  ChartMissing: {
    severity: 'error',
    meaning: 'A chart of a pack is neither in the definition nor in a content bundle of this host.',
    action:
      'Build the definition again with the folder of the pack, or upload a bundle with the chart: edgehostctl content build --chart FILE.',
  },
  DefinitionProblem: {
    severity: 'error',
    meaning: `With these values of the variables, values or manifests of a pack cannot be used; the message ends with a code of ${documentPath('definition-problems.md')}.`,
    action: 'Correct the value of the variable, or the definition.',
  },
  HelmMissing: {
    severity: 'error',
    meaning: 'A pack has a chart, or a manifest that is a template, and this host has no program helm.',
    action: 'Upload a content bundle with helm: edgehostctl content build --programs helm=VERSION:DIR.',
  },
  ImageDamaged: {
    severity: 'error',
    meaning: 'An image that a pack or Kubernetes needs is in a content bundle of which a blob is damaged.',
    action: 'Upload the bundle again.',
  },
  ImageForeign: {
    severity: 'error',
    meaning:
      'An image that a pack or Kubernetes needs is in the content, but not for the architecture of this host.',
    action: 'Upload a bundle with the image for this architecture.',
  },
  ImageMissing: {
    severity: 'error',
    meaning: 'An image that a pack or Kubernetes needs is in no content bundle of this host.',
    action: 'Upload a bundle with the image: edgehostctl content build --image-archive FILE.',
  },
  InfrastructureMissing: {
    severity: 'error',
    meaning: 'The definition has no profile with the layers os, k8s and cni.',
    action: 'Build the definition again with such a profile.',
  },
  KindUnknown: {
    severity: 'error',
    meaning:
      'An object of a pack is of a kind that neither Kubernetes of that version has nor a pack defines that comes before. If a program of the packs may define kinds, as an operator, it is a warning.',
    action:
      'Correct apiVersion or kind, or add the pack with the custom resource definition, with a lower install priority.',
  },
  KubernetesVersionInvalid: {
    severity: 'error',
    meaning: 'The version of the Kubernetes pack is no version of Kubernetes.',
    action: 'Use a pack with a version such as 1.34.4.',
  },
  ManifestInvalid: {
    severity: 'error',
    meaning:
      'A manifest of a pack cannot be rendered as a template, is not valid YAML, or has an object that cannot be applied.',
    action: 'Correct the manifest or the values below manifests.NAME.',
  },
  NamespaceInvalid: {
    severity: 'error',
    meaning: 'A pack names a namespace that Kubernetes does not allow.',
    action: 'Correct namespace, additionalNamespaces, namespaceLabels or namespaceAnnotations below pack.',
  },
  NamespaceLabelInvalid: {
    severity: 'error',
    meaning: 'A pack gives a namespace a label or an annotation that Kubernetes refuses.',
    action: 'Correct namespaceLabels or namespaceAnnotations below pack.',
  },
  NamespaceMissing: {
    severity: 'error',
    meaning:
      'An object of a pack is in a namespace that neither Kubernetes has nor a pack makes that comes before. If a program of the packs may make namespaces it is a warning.',
    action:
      'Name the namespace below pack.additionalNamespaces, or correct metadata.namespace of the object.',
  },
  ObjectNameInvalid: {
    severity: 'error',
    meaning: 'An object of a pack has a name that Kubernetes refuses.',
    action: 'Correct metadata.name in the manifest, or the values from which it is made.',
  },
  ObjectTwice: {
    severity: 'error',
    meaning:
      'A chart has an object that is there already: of another release, of a manifest, or a namespace of the pack; helm refuses it. Different objects of one name in the manifests of two packs are a warning: the later one replaces the other.',
    action: 'Leave the object out of one of the packs.',
  },
  PackDrainInvalid: {
    severity: 'error',
    meaning: 'The eviction settings of a pack are not understood.',
    action: 'Set pack.drainPods to auto, true or false, and pack.podSelector to a label selector.',
  },
  PackPriorityInvalid: {
    severity: 'warning',
    meaning: 'The install priority of a pack is not an integer; 0 is taken.',
    action: 'Correct spectrocloud.com/install-priority below pack.',
  },
  ReleaseInvalid: {
    severity: 'error',
    meaning:
      'The name of the Helm release of a chart, PACK-CHART or an override, is not allowed or too long.',
    action: 'Give the chart another name below pack.releaseNameOverride.',
  },
  ReleaseTwice: {
    severity: 'error',
    meaning: 'Two charts have one name of a Helm release in one namespace.',
    action: 'Give one of them another name below pack.releaseNameOverride, or another namespace.',
  },
  // The host
  ArchitectureUnsupported: {
    severity: 'error',
    meaning: 'Kubernetes packs of edge hosts exist for amd64 and arm64 only.',
    action: 'Take another host.',
  },
  CgroupControllerMissing: {
    severity: 'error',
    meaning: 'The kernel has no control group that the kubelet needs: cpu, cpuset, memory or pids.',
    action: "Enable it on the kernel's command line, for example with cgroup_enable=memory.",
  },
  CgroupVersionOutdated: {
    severity: 'warning',
    meaning:
      'The host has control groups of version 1. The kubelet refuses them from Kubernetes 1.35 on: an error then.',
    action:
      'Boot with systemd.unified_cgroup_hierarchy=1, or set kubeletConfiguration.failCgroupV1 to false in the Kubernetes pack.',
  },
  ClockNotSynchronized: {
    severity: 'warning',
    meaning: 'No time service has synchronized the clock of this host.',
    action: 'Set up systemd-timesyncd or chrony with a time server that the host reaches.',
  },
  ClockWrong: {
    severity: 'error',
    meaning:
      'The clock is before the release of every supported Kubernetes; certificates would be made for that time.',
    action: 'Set the clock.',
  },
  DiskSpaceLow: {
    severity: 'error',
    meaning:
      'A file system that the cluster writes to has less than 2 GiB free, or room for fewer than 20,480 files (df -i). Less than 15 % of it, or of its files less than 5 %, is a warning: the kubelet then removes images and refuses pods.',
    action: 'Free some space, or take a larger disk or one with more inodes.',
  },
  EndpointInvalid: {
    severity: 'error',
    meaning:
      'The address of the control plane is not an address that this host can have in one of its networks.',
    action:
      'Leave controlPlaneEndpoint.host empty, or give an address of this host or a free one of its network.',
  },
  EndpointTaken: {
    severity: 'error',
    meaning: 'A device of the network answers at the address of the control plane.',
    action: 'Give a free address.',
  },
  FileSystemUnusable: {
    severity: 'error',
    meaning:
      'The file system of the state folder is mounted so that no program can be run there (noexec), takes no overlay, without which containerd makes no container, or root cannot write there. All were tried there.',
    action:
      'Mount the state folder without noexec, or on a file system such as ext4 or xfs that root may write; the message names the mount point and the option.',
  },
  FirewallDrops: {
    severity: 'warning',
    meaning:
      'A firewall of this host has a chain for incoming or forwarded packets that drops or rejects what it does not accept: by its policy, or by a rule whose conditions every connection of a pod meets, as firewalld has it.',
    action:
      'Let the network of the pods pass in it: from pods to this host, and between pods and other networks. Its rules are not changed by edgehostd.',
  },
  HostProgramMissing: {
    severity: 'error',
    meaning:
      'A program that the operating system has to bring is missing: containerd, runc, CNI plugins, iproute2, iptables or nft, conntrack, mount, losetup; socat and ethtool are warnings.',
    action:
      'Install the package edgehostd-kubernetes, which depends on all of them, or the packages that the message names.',
  },
  KernelUnsupported: {
    severity: 'error',
    meaning: 'kubeadm of that version does not accept the kernel.',
    action:
      'Take another kernel or Kubernetes pack, or have the pack ignore the check: ignorePreflightErrors with SystemVerification.',
  },
  KubernetesPresent: {
    severity: 'error',
    meaning: 'The host has a kubelet, another Kubernetes, or files of a cluster that edgehostd did not make.',
    action: 'Remove it, for example with kubeadm reset and by removing the package kubelet.',
  },
  MemoryTooSmall: {
    severity: 'error',
    meaning: 'The host has less than the 1700 MiB of memory that kubeadm asks for.',
    action: 'Take a larger host, or have the pack ignore the check: ignorePreflightErrors with Mem.',
  },
  NetworkConfigPresent: {
    severity: 'warning',
    meaning:
      '/etc/cni/net.d has a network configuration of another program, for example of podman. Pods that start before the network of the cluster get that one.',
    action: 'Move the files to another folder, or remove that program.',
  },
  NetworkFamilyDiffers: {
    severity: 'error',
    meaning:
      'The first network of services is of another family, IPv4 or IPv6, than the address of this host or all networks of pods.',
    action:
      'Name networks of the family of the host first in serviceSubnet and podSubnet of the Kubernetes pack, or give a hostAddress of the other family.',
  },
  NetworkOverlaps: {
    severity: 'error',
    meaning:
      'The networks of pods and services overlap each other or a network of this host. A route to a far network is a warning.',
    action: 'Change podSubnet or serviceSubnet in the Kubernetes pack.',
  },
  NodeNameInvalid: {
    severity: 'error',
    meaning: 'The host name cannot be the name of a node.',
    action: 'Set a host name of at most 63 lower-case letters, digits, hyphens and dots.',
  },
  PortTaken: {
    severity: 'error',
    meaning: 'Another program listens at a port of the control plane or of the kubelet.',
    action: 'Stop that program; ss -ltnp names it.',
  },
  ResolverUnusable: {
    severity: 'error',
    meaning:
      'The file from which pods get their name servers is missing, names none, or only ones that lead back to CoreDNS, as 127.0.0.53. CoreDNS ends with it, and nothing in the cluster resolves a name. One such server beside others is a warning, and so is a line that pods take and this host does not, as one with a carriage return.',
    action:
      'Name a server of another machine in /etc/resolv.conf, or in systemd-resolved where it runs; it need not answer. Or name a file with one in kubeletConfiguration.resolvConf of the Kubernetes pack.',
  },
  SwapEnabled: {
    severity: 'error',
    meaning: 'The host has swap, which the kubelet refuses unless the pack allows it.',
    action: 'Turn swap off, or set kubeletConfiguration.failSwapOn to false in the Kubernetes pack.',
  },
  TooFewCores: {
    severity: 'error',
    meaning: 'The host has less than the 2 cores that kubeadm asks for.',
    action: 'Take a larger host, or have the pack ignore the check: ignorePreflightErrors with NumCPU.',
  },
  KubernetesUnknown: {
    severity: 'error',
    meaning: 'This version of edgehostd cannot make Kubernetes of the Kubernetes pack of the definition.',
    action: 'Build the definition with the pack edge-k8s.',
  },
  // The check itself
  CheckFailed: {
    severity: 'error',
    meaning: 'A check could not be made, for the given reason.',
    action: 'Correct the reason and check again; journalctl -u edgehostd has more.',
  },
} as const satisfies Readonly<Record<string, PreflightCode>>

interface PreflightCode {
  readonly severity: 'error' | 'warning'
  readonly meaning: string
  readonly action: string
}

export type PreflightCodeName = keyof typeof preflightCodes

/** A finding of a pre-flight check. */
export interface PreflightProblem {
  readonly code: PreflightCodeName
  /** `error`: the cluster cannot be created. */
  readonly severity: 'error' | 'warning'
  /** The problem, and what to do. */
  readonly message: string
  /** `id` of its pack. */
  readonly pack?: string
  /** JSON path in the posted configuration, for example `spec.cloudConfig.spec.machinePoolConfig[0].hosts`. */
  readonly path?: string
}
