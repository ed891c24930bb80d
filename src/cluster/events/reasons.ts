import { conditionTypes, type Reason } from './condition-types.ts'
import { certificateReasons, updateReasons } from './reasons-of-changes.ts'

/**
 * Every reason of an event, in the order in which they come while a cluster is made. Each belongs to one type of condition. Reasons
 * are stable, texts may improve. `expectedOrder` of the API and docs/cluster-events.md are made from this table.
 */
export const reasons = {
  Accepted: {
    type: 'ClusterAccepted',
    label: 'Accepted',
    status: 'True',
    isExpected: true,
    meaning: 'The cluster was posted, and is stored. Nothing was started yet.',
  },
  Adopted: {
    type: 'ClusterAccepted',
    label: 'Adopted',
    status: 'True',
    severity: 'Warning',
    meaning:
      'The database was lost, and the cluster that is on this host was taken over from its folder in the state folder; the message says what is lost.',
  },
  PreflightPassed: {
    type: 'PreflightPassed',
    label: 'Passed',
    status: 'True',
    isExpected: true,
    meaning:
      'The pre-flight checks found no error. A failed pre-flight is a refusal of the request, not an event.',
  },
  PreflightWarning: {
    type: 'PreflightPassed',
    label: 'Warning',
    severity: 'Warning',
    meaning: 'A finding of the pre-flight checks that does not stop the cluster.',
  },

  HostRecorded: {
    type: 'HostRecorded',
    label: 'Recorded',
    status: 'True',
    isExpected: true,
    meaning:
      'Links, routes, rules, sysctls and files of the host were recorded, so that a deletion can restore them.',
  },
  NoteDamaged: {
    type: 'HostRecorded',
    label: 'Note damaged',
    severity: 'Warning',
    meaning:
      'A file in which edgehostd notes what it has done on this host cannot be read any more; the message says what follows.',
  },
  AddressHeld: {
    type: 'AddressHeld',
    label: 'Held',
    status: 'True',
    meaning: 'This host holds the virtual address of the control plane.',
  },
  AddressLost: {
    type: 'AddressHeld',
    label: 'Lost',
    status: 'False',
    severity: 'Warning',
    meaning: 'This host does not hold the virtual address any more; it is set again.',
  },
  NtpServersApplied: {
    type: 'NtpServersApplied',
    label: 'Applied',
    status: 'True',
    meaning: 'The host takes its time from the servers of the cluster, or from its own again.',
  },
  NtpServersNotApplied: {
    type: 'NtpServersApplied',
    label: 'Not applied',
    status: 'False',
    severity: 'Warning',
    meaning:
      'The host cannot take its time from the servers of the cluster; the message says why and what to do. It gets them by itself then.',
  },
  SshKeysApplied: {
    type: 'SshKeysApplied',
    label: 'Applied',
    status: 'True',
    meaning: 'The SSH keys of the cluster are in a file of their own, or were taken away again.',
  },
  SshKeysNotApplied: {
    type: 'SshKeysApplied',
    label: 'Not applied',
    status: 'False',
    severity: 'Warning',
    meaning:
      'The account cannot get the SSH keys of the cluster; the message says why and what to do. It gets them by itself then.',
  },
  ProgramsPlaced: {
    type: 'ProgramsPlaced',
    label: 'Placed',
    status: 'True',
    isExpected: true,
    meaning: 'The programs of the Kubernetes version were taken from the content.',
  },
  ContainerRuntimeStarted: {
    type: 'ContainerRuntimeReady',
    label: 'Started',
    status: 'True',
    isExpected: true,
    meaning: 'The containerd of the cluster runs.',
  },
  ContainerRuntimeStopped: {
    type: 'ContainerRuntimeReady',
    label: 'Stopped',
    status: 'False',
    severity: 'Warning',
    meaning:
      'The containerd of the cluster does not run; systemd starts it again, or edgehostd where an administrator has stopped it.',
  },
  ImagePulled: {
    type: 'ImageResolutionDone',
    label: 'Image pulled',
    meaning: 'An image was pulled from the registry of this host.',
  },
  ImagesPulled: {
    type: 'ImageResolutionDone',
    label: 'Pulled',
    status: 'True',
    isExpected: true,
    meaning: 'All images that Kubernetes itself needs are in containerd.',
  },

  CheckingHost: {
    type: 'BootstrapChecks',
    label: 'Checking the host',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm checks the host. This and the next reasons are phases of kubeadm, each when it begins.',
  },
  MakingCertificates: {
    type: 'BootstrapCertificates',
    label: 'Making certificates',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm makes the certificates of the control plane.',
  },
  WritingKubeconfigs: {
    type: 'BootstrapKubeconfigs',
    label: 'Writing kubeconfigs',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm writes the kubeconfigs of the components and of the administrator.',
  },
  WritingEtcdPod: {
    type: 'BootstrapEtcd',
    label: 'Writing the pod of etcd',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm writes the static pod of etcd.',
  },
  WritingStaticPods: {
    type: 'BootstrapStaticPods',
    label: 'Writing static pods',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm writes the static pods of API server, controller manager and scheduler.',
  },
  StartingKubelet: {
    type: 'BootstrapKubelet',
    label: 'Starting the kubelet',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm configures and starts the kubelet.',
  },
  WaitingForControlPlane: {
    type: 'BootstrapHealth',
    label: 'Waiting for the control plane',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm waits until kubelet, API server, controller manager and scheduler are healthy.',
  },
  StoringConfiguration: {
    type: 'BootstrapUpload',
    label: 'Storing the configuration',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm stores its configuration in the cluster.',
  },
  MarkingNode: {
    type: 'BootstrapMark',
    label: 'Marking the node',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm sets labels and taints of the node.',
  },
  MakingBootstrapToken: {
    type: 'BootstrapToken',
    label: 'Making the bootstrap token',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm makes the token and the rules with which nodes may join.',
  },
  ApplyingAddons: {
    type: 'BootstrapAddons',
    label: 'Applying CoreDNS and kube-proxy',
    status: 'True',
    isExpected: true,
    meaning: 'kubeadm applies CoreDNS and kube-proxy.',
  },
  BootstrapReset: {
    type: 'BootstrappingDone',
    label: 'Reset',
    status: 'False',
    severity: 'Warning',
    meaning: 'A set-up of the control plane that did not end is cleared away before the next try.',
  },
  ControlPlaneStarted: {
    type: 'BootstrappingDone',
    label: 'Started',
    status: 'True',
    isExpected: true,
    meaning: 'The control plane is set up.',
  },
  ApiAnswers: {
    type: 'ApiAnswers',
    label: 'Answers',
    status: 'True',
    isExpected: true,
    meaning: 'The API server of the cluster answers, for the first time or again.',
  },
  ApiSilent: {
    type: 'ApiAnswers',
    label: 'Silent',
    status: 'Unknown',
    severity: 'Warning',
    meaning: 'The API server of the cluster does not answer.',
  },
  KubeletStarted: {
    type: 'KubeletRunning',
    label: 'Started',
    status: 'True',
    meaning: 'The kubelet runs again.',
  },
  KubeletStopped: {
    type: 'KubeletRunning',
    label: 'Stopped',
    status: 'False',
    severity: 'Warning',
    meaning:
      'The kubelet does not run; systemd starts it again, or edgehostd where an administrator has stopped it.',
  },
  NodeReady: {
    type: 'ControlPlaneNodeAdditionDone',
    label: 'Ready',
    status: 'True',
    isExpected: true,
    meaning: 'The node of this host is Ready.',
  },
  NodeNotReady: {
    type: 'ControlPlaneNodeAdditionDone',
    label: 'Not ready',
    status: 'False',
    severity: 'Warning',
    meaning: 'The node of this host is not Ready; the message comes from Kubernetes.',
  },

  PackApplying: {
    type: 'AddOnDeploymentDone',
    label: 'Applying',
    status: 'False',
    meaning: 'A pack is being applied.',
  },
  ObjectCorrected: {
    type: 'AddOnDeploymentDone',
    label: 'Corrected',
    severity: 'Warning',
    meaning:
      'An object of a pack was changed or deleted, by hand or by another program, and was put right; the message names the object and its fields.',
  },
  ObjectContested: {
    type: 'AddOnDeploymentDone',
    label: 'Contested',
    severity: 'Warning',
    meaning:
      'An object of a pack is changed again each time that it was put right, as by another controller. It is put right less and less often, and that is not reported any more; change the pack or the controller.',
  },
  ObjectRefused: {
    type: 'AddOnDeploymentDone',
    label: 'Refused',
    severity: 'Warning',
    meaning:
      'An object of a pack was changed or deleted, and the API server refuses to have it put right, as by a policy; the message says why. It is tried again every 10 minutes, and reported again when the reason changes.',
  },
  PackRemoving: {
    type: 'AddOnDeploymentDone',
    label: 'Taking away',
    meaning: 'A pack that is not desired any more is being removed.',
  },
  PackApplied: {
    type: 'AddOnDeploymentDone',
    label: 'Applied',
    meaning: 'Everything of a pack is applied; its workloads may still be coming up.',
  },
  PackAvailable: {
    type: 'AddOnDeploymentDone',
    label: 'Available',
    meaning: 'The workloads of a pack are available.',
  },
  PackFailed: {
    type: 'AddOnDeploymentDone',
    label: 'Failed',
    status: 'False',
    severity: 'Warning',
    meaning: 'A pack could not be applied, or its workloads did not become available in time.',
  },
  PodsFailing: {
    type: 'AddOnDeploymentDone',
    label: 'Pods failing',
    severity: 'Warning',
    meaning:
      'Pods of a pack, or of CoreDNS or kube-proxy, do not run. The message names a pod, its container and the reason, one word of troubles of GET /v1/edge-mgmt/cluster/details, and how long the change is still tried. Reported once for each workload, container, reason and revision, not at each restart.',
  },
  PodsRecovered: {
    type: 'AddOnDeploymentDone',
    label: 'Pods recovered',
    meaning:
      'A reported reason why pods do not run is over: at once, or for a container that crashed or whose probe failed when it has run for a minute.',
  },
  PodReplaced: {
    type: 'AddOnDeploymentDone',
    label: 'Pod replaced',
    severity: 'Warning',
    meaning:
      'A pod of a former revision of a StatefulSet did not run and held up the present one: it was deleted, and is made anew.',
  },
  ReleaseCured: {
    type: 'AddOnDeploymentDone',
    label: 'Release cured',
    severity: 'Warning',
    meaning:
      'A Helm release that an interrupted run had left pending was uninstalled, or rolled back to its last deployed revision.',
  },
  PacksAvailable: {
    type: 'AddOnDeploymentDone',
    label: 'All available',
    status: 'True',
    isExpected: true,
    meaning: 'Every pack is applied and its workloads are available.',
  },

  Provisioning: {
    type: 'ClusterRunning',
    label: 'Provisioning',
    status: 'False',
    meaning: 'The phase of the cluster: steps run.',
  },
  Provisioned: {
    type: 'ClusterRunning',
    label: 'Provisioned',
    status: 'False',
    meaning: 'The phase of the cluster: the node is Ready, packs still move.',
  },
  Running: {
    type: 'ClusterRunning',
    label: 'Running',
    status: 'True',
    isExpected: true,
    meaning: 'The phase of the cluster: the node is Ready, every pack is applied and available.',
  },
  Failed: {
    type: 'ClusterRunning',
    label: 'Failed',
    status: 'False',
    severity: 'Warning',
    meaning: 'The phase of the cluster: a step gave up; it is tried again, later each time.',
  },
  Unknown: {
    type: 'ClusterRunning',
    label: 'Unknown',
    status: 'Unknown',
    severity: 'Warning',
    meaning: 'The phase of the cluster: its API server has been silent for 60 seconds.',
  },
  Healthy: {
    type: 'ClusterHealthy',
    label: 'Healthy',
    status: 'True',
    meaning: 'All workloads of the packs are available, for the first time or again.',
  },
  Unhealthy: {
    type: 'ClusterHealthy',
    label: 'Unhealthy',
    status: 'False',
    severity: 'Warning',
    meaning: 'A workload of a running cluster went down; the message names it.',
  },

  ...updateReasons,
  ...certificateReasons,

  Deleting: {
    type: 'ClusterDeleted',
    label: 'Deleting',
    status: 'False',
    meaning: 'The cluster is being deleted.',
  },
  KubernetesRemoved: {
    type: 'ClusterDeleted',
    label: 'Kubernetes removed',
    meaning: 'Kubernetes and its files were taken from this host.',
  },
  HostRestored: {
    type: 'HostRestored',
    label: 'Restored',
    status: 'True',
    meaning: 'Changes of this host by Kubernetes and its network were taken back.',
  },
  LeftoversFound: {
    type: 'HostRestored',
    label: 'Leftovers',
    severity: 'Warning',
    meaning:
      'Changes of this host since the cluster was accepted that are not of Kubernetes or its network, so they were left; the message names them.',
  },
  Deleted: {
    type: 'ClusterDeleted',
    label: 'Deleted',
    status: 'True',
    meaning: 'The cluster is deleted. The last event of a cluster.',
  },

  DaemonStarted: {
    type: 'StepsSucceed',
    label: 'Daemon started',
    meaning: 'edgehostd was started and found this cluster.',
  },
  HostStopping: {
    type: 'StepsSucceed',
    label: 'Host stops',
    meaning:
      'This host is rebooted or shut down, since a user has asked for it; the message says who, and why.',
  },
  HostStopFailed: {
    type: 'StepsSucceed',
    label: 'Host did not stop',
    severity: 'Warning',
    meaning: 'A reboot or a shutdown of this host that was asked for was not done; the message says why.',
  },
  HostBack: {
    type: 'StepsSucceed',
    label: 'Host is back',
    meaning: 'This host was booted; the message says after how long, and why it was away.',
  },
  StepStarted: {
    type: 'StepsSucceed',
    label: 'Started',
    meaning: 'A step begins; the message is its title.',
  },
  StepProgress: {
    type: 'StepsSucceed',
    label: 'Progress',
    meaning: 'A step reports what it does.',
  },
  StepDone: {
    type: 'StepsSucceed',
    label: 'Done',
    status: 'True',
    meaning: 'A step has done its work; the message is its title.',
  },
  StepFailed: {
    type: 'StepsSucceed',
    label: 'Failed',
    status: 'False',
    severity: 'Warning',
    meaning: 'A step failed or took too long; the message says why, and when it is tried again.',
  },
  StepRetried: {
    type: 'StepsSucceed',
    label: 'Retried',
    meaning: 'A step that failed is tried again.',
  },
  StepStopped: {
    type: 'StepsSucceed',
    label: 'Stopped',
    meaning:
      'A running step was ended, since the cluster is being deleted, or the change that it belongs to is taken back.',
  },
  StepFoundAgain: {
    type: 'StepsSucceed',
    label: 'Found again',
    meaning: 'After a restart of edgehostd a step was found, still running or ended in the meantime.',
  },
  StepCutOff: {
    type: 'StepsSucceed',
    label: 'Cut off',
    severity: 'Warning',
    meaning:
      'A step was cut off before its end, as by a power cut; the host is observed, and the steps are planned anew.',
  },
} as const satisfies Readonly<Record<string, Reason>>

/** Name of a reason. */
export type ReasonName = keyof typeof reasons

/** The description of a reason. */
export const reasonOf = (name: ReasonName): Reason => reasons[name]

/** Whether a text is a reason of the table; one of an older version of the daemon may not be. */
export const isReason = (text: string): text is ReasonName => Object.hasOwn(reasons, text)

/** The categories of milestones, each with its expected reasons, in order. */
export function expectedOrder() {
  const expected = Object.entries<Reason>(reasons).filter(([, { isExpected }]) => isExpected)
  const categories = [...new Set(expected.map(([, { type }]) => conditionTypes[type].category))]
  return categories.map((category, index) => ({
    category,
    order: index + 1,
    conditionsOrder: expected
      .filter(([, { type }]) => conditionTypes[type].category === category)
      .map(([reason, { type, label }], place) => ({
        order: place + 1,
        type,
        typeLabel: conditionTypes[type].label,
        reason,
        reasonLabel: label,
      })),
  }))
}
