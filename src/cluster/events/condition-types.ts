/** A type of condition: something about a cluster, or about this host for it, that is true or not. */
export interface ConditionType {
  readonly category: CategoryName
  readonly label: string
  /** Its subject: decides between `clusterEvents` and `edgeHostEvents`. */
  readonly of: 'cluster' | 'host'
}

/** Categories of conditions, in the order in which a cluster goes through them. */
export const categories = {
  Request: 'The request, and whether this host can do it.',
  Host: 'Needs of this host before Kubernetes.',
  ControlPlane: 'The control plane and the node.',
  Packs: 'The packs of the definition.',
  Operation: 'The cluster as a whole.',
  Deletion: 'The way back to a host without a cluster.',
  Steps: 'The work of edgehostd, step by step.',
} as const
type CategoryName = keyof typeof categories

/**
 * Every type of condition. Where the platform publishes a type of the same meaning, its name is used: ImageResolutionDone,
 * BootstrappingDone, ControlPlaneNodeAdditionDone, AddOnDeploymentDone.
 */
export const conditionTypes = {
  ClusterAccepted: { category: 'Request', label: 'Cluster accepted', of: 'cluster' },
  PreflightPassed: { category: 'Request', label: 'Pre-flight checks', of: 'cluster' },
  HostRecorded: { category: 'Host', label: 'State of the host recorded', of: 'host' },
  AddressHeld: { category: 'Host', label: 'Virtual address', of: 'host' },
  NtpServersApplied: { category: 'Host', label: 'NTP servers of the cluster', of: 'host' },
  SshKeysApplied: { category: 'Host', label: 'SSH keys of the cluster', of: 'host' },
  ProgramsPlaced: { category: 'Host', label: 'Programs of Kubernetes', of: 'host' },
  ContainerRuntimeReady: { category: 'Host', label: 'Container runtime', of: 'host' },
  ImageResolutionDone: { category: 'Host', label: 'Images of Kubernetes', of: 'host' },
  BootstrapChecks: { category: 'ControlPlane', label: 'Checks of kubeadm', of: 'cluster' },
  BootstrapCertificates: { category: 'ControlPlane', label: 'Certificates', of: 'cluster' },
  BootstrapKubeconfigs: { category: 'ControlPlane', label: 'Kubeconfigs', of: 'cluster' },
  BootstrapEtcd: { category: 'ControlPlane', label: 'etcd', of: 'cluster' },
  BootstrapStaticPods: { category: 'ControlPlane', label: 'Static pods', of: 'cluster' },
  BootstrapKubelet: { category: 'ControlPlane', label: 'Kubelet', of: 'cluster' },
  BootstrapHealth: { category: 'ControlPlane', label: 'Health of the control plane', of: 'cluster' },
  BootstrapUpload: { category: 'ControlPlane', label: 'Configuration in the cluster', of: 'cluster' },
  BootstrapMark: { category: 'ControlPlane', label: 'Labels and taints of the node', of: 'cluster' },
  BootstrapToken: { category: 'ControlPlane', label: 'Bootstrap token', of: 'cluster' },
  BootstrapAddons: { category: 'ControlPlane', label: 'CoreDNS and kube-proxy', of: 'cluster' },
  BootstrappingDone: { category: 'ControlPlane', label: 'Control plane set up', of: 'cluster' },
  ApiAnswers: { category: 'ControlPlane', label: 'API server', of: 'cluster' },
  KubeletRunning: { category: 'Host', label: 'Kubelet running', of: 'host' },
  ControlPlaneNodeAdditionDone: { category: 'ControlPlane', label: 'Node', of: 'cluster' },
  AddOnDeploymentDone: { category: 'Packs', label: 'Packs', of: 'cluster' },
  ClusterRunning: { category: 'Operation', label: 'Cluster', of: 'cluster' },
  ClusterHealthy: { category: 'Operation', label: 'Health', of: 'cluster' },
  ClusterUpdateAccepted: { category: 'Operation', label: 'Change accepted', of: 'cluster' },
  KubernetesUpgraded: { category: 'Operation', label: 'Version of Kubernetes', of: 'cluster' },
  ClusterUpdated: { category: 'Operation', label: 'Last change', of: 'cluster' },
  CertificatesValid: { category: 'Operation', label: 'Certificates of the control plane', of: 'cluster' },
  AuthoritiesValid: { category: 'Operation', label: 'Certificate authorities', of: 'cluster' },
  ClusterDeleted: { category: 'Deletion', label: 'Deletion', of: 'cluster' },
  HostRestored: { category: 'Deletion', label: 'State of the host restored', of: 'host' },
  StepsSucceed: { category: 'Steps', label: 'Last step', of: 'cluster' },
} as const satisfies Readonly<Record<string, ConditionType>>

/** Name of a type of condition. */
export type ConditionTypeName = keyof typeof conditionTypes

/** A reason of an event. */
export interface Reason {
  /** Type of its condition. */
  readonly type: ConditionTypeName
  readonly label: string
  /** New status of the condition; absent where it leaves the condition as it is. */
  readonly status?: 'True' | 'False' | 'Unknown'
  /** By default Normal. */
  readonly severity?: 'Warning'
  /** Whether every cluster that comes up has it. */
  readonly isExpected?: true
  readonly meaning: string
}
