import type { Reason } from './condition-types.ts'

/** Reasons of events about the certificates of Kubernetes; see `reasons.ts`. */
export const certificateReasons = {
  RenewalRequested: {
    type: 'CertificatesValid',
    label: 'Renewal requested',
    meaning: 'An administrator asked for a renewal of the certificates of the control plane.',
  },
  CertificatesRenewed: {
    type: 'CertificatesValid',
    label: 'Renewed',
    status: 'True',
    meaning:
      'The certificates of the control plane are renewed, by themselves or as an administrator asked for, and its parts run with them.',
  },
  CertificateEnding: {
    type: 'CertificatesValid',
    label: 'Ending',
    status: 'False',
    severity: 'Warning',
    meaning:
      'A certificate of Kubernetes ends soon and cannot be renewed by edgehostd, or its file cannot be read; the message names it.',
  },
  CertificatesValid: {
    type: 'CertificatesValid',
    label: 'Valid',
    status: 'True',
    meaning: 'No certificate ends soon any more that edgehostd cannot renew, and all files can be read.',
  },
  AuthorityEnding: {
    type: 'AuthoritiesValid',
    label: 'Ending',
    status: 'False',
    severity: 'Warning',
    meaning:
      'A certificate authority of Kubernetes ends within a year, or has less than a third of a shorter life left. Authorities are not renewed.',
  },
  AuthoritiesValid: {
    type: 'AuthoritiesValid',
    label: 'Valid',
    status: 'True',
    meaning: 'No certificate authority ends within a year any more.',
  },
} as const satisfies Readonly<Record<string, Reason>>

/** Reasons of events about changes of a running cluster, upgrades of Kubernetes among them; see `reasons.ts`. */
export const updateReasons = {
  UpdateAccepted: {
    type: 'ClusterUpdateAccepted',
    label: 'Accepted',
    status: 'True',
    meaning:
      'A change of the cluster was accepted as a revision; it is started when nothing else is under way.',
  },
  UpdateScheduled: {
    type: 'ClusterUpdateAccepted',
    label: 'Scheduled',
    status: 'True',
    meaning:
      'A change of the cluster was accepted, and is started at its time; a later write takes its place.',
  },
  UpdateHeld: {
    type: 'ClusterUpdateAccepted',
    label: 'Held',
    status: 'False',
    severity: 'Warning',
    meaning:
      'A change of the cluster was accepted and is not started, since required variables have no value; the message names them. The cluster runs on, and the next write that has the values continues it.',
  },
  UpdateStarted: {
    type: 'ClusterUpdated',
    label: 'Started',
    meaning: 'A revision of the cluster is being applied.',
  },
  KubernetesChecked: {
    type: 'KubernetesUpgraded',
    label: 'Checked',
    meaning: 'kubeadm of the new version can upgrade the cluster; a line for each component that it changes.',
  },
  KubernetesCopying: {
    type: 'KubernetesUpgraded',
    label: 'Copying',
    meaning:
      'The kubelet and etcd are stopped for some seconds, so that etcd can be copied; workloads keep running.',
  },
  KubernetesCopied: {
    type: 'KubernetesUpgraded',
    label: 'Copied',
    meaning: 'A copy of Kubernetes to go back to is whole and on the disk.',
  },
  KubernetesUpgrading: {
    type: 'KubernetesUpgraded',
    label: 'Upgrading',
    status: 'False',
    meaning: 'kubeadm upgrades a component; meanwhile the API may not answer for about a minute.',
  },
  KubernetesUpgraded: {
    type: 'KubernetesUpgraded',
    label: 'Upgraded',
    meaning: 'The new version runs, and is watched until it is good. Until then it is taken back by itself.',
  },
  KubernetesGood: {
    type: 'KubernetesUpgraded',
    label: 'Good',
    status: 'True',
    meaning:
      'The new version has been available for a minute. From now on it is taken back only by a rollback that discards changes.',
  },
  KubernetesRestoring: {
    type: 'KubernetesUpgraded',
    label: 'Restoring',
    status: 'False',
    severity: 'Warning',
    meaning: 'The copy of the version before is put in the place of Kubernetes.',
  },
  KubernetesRestored: {
    type: 'KubernetesUpgraded',
    label: 'Restored',
    status: 'True',
    severity: 'Warning',
    meaning:
      'The version before runs again. Writes to its API between the two times of the message are lost; every container of the host was started again.',
  },
  KubernetesUnchanged: {
    type: 'KubernetesUpgraded',
    label: 'Unchanged',
    status: 'True',
    meaning: 'A change of the version was given up before anything of Kubernetes was changed.',
  },
  Updated: {
    type: 'ClusterUpdated',
    label: 'Updated',
    status: 'True',
    meaning: 'The cluster is Running with the revision.',
  },
  UpdateFailed: {
    type: 'ClusterUpdated',
    label: 'Failed',
    status: 'False',
    severity: 'Warning',
    meaning: 'A revision was not available in time, or failed; the message names the problem.',
  },
  RollbackStarted: {
    type: 'ClusterUpdated',
    label: 'Rolling back',
    meaning:
      'The last good revision is applied again; where Kubernetes was upgraded and is good, all of it but Kubernetes.',
  },
  RolledBack: {
    type: 'ClusterUpdated',
    label: 'Rolled back',
    status: 'True',
    severity: 'Warning',
    meaning:
      'The cluster is Running with the last good revision again, or with its packs on a newer Kubernetes.',
  },
  RollbackFailed: {
    type: 'ClusterUpdated',
    label: 'Rollback failed',
    status: 'False',
    severity: 'Warning',
    meaning: 'The last good revision does not run either; the message has advice for the operator.',
  },
} as const satisfies Readonly<Record<string, Reason>>
