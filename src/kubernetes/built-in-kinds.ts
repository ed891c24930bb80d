/**
 * The kinds that the API server itself has when nothing is enabled beyond its defaults, by apiVersion: discovery of 1.33.13 and 1.34.4
 * (test/host/kubernetes/built-in-kinds.test.ts). `*`: its objects have no namespace.
 */
const recorded: Readonly<Record<string, string>> = {
  v1: 'Binding ComponentStatus* ConfigMap Endpoints Event LimitRange Namespace* Node* PersistentVolume* PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount',
  'admissionregistration.k8s.io/v1':
    'MutatingWebhookConfiguration* ValidatingAdmissionPolicy* ValidatingAdmissionPolicyBinding* ValidatingWebhookConfiguration*',
  'apiextensions.k8s.io/v1': 'CustomResourceDefinition*',
  'apiregistration.k8s.io/v1': 'APIService*',
  'apps/v1': 'ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet',
  'authentication.k8s.io/v1': 'SelfSubjectReview* TokenReview*',
  'authorization.k8s.io/v1':
    'LocalSubjectAccessReview SelfSubjectAccessReview* SelfSubjectRulesReview* SubjectAccessReview*',
  'autoscaling/v1': 'HorizontalPodAutoscaler',
  'autoscaling/v2': 'HorizontalPodAutoscaler',
  'batch/v1': 'CronJob Job',
  'certificates.k8s.io/v1': 'CertificateSigningRequest*',
  'coordination.k8s.io/v1': 'Lease',
  'discovery.k8s.io/v1': 'EndpointSlice',
  'events.k8s.io/v1': 'Event',
  'flowcontrol.apiserver.k8s.io/v1': 'FlowSchema* PriorityLevelConfiguration*',
  'networking.k8s.io/v1': 'IPAddress* Ingress IngressClass* NetworkPolicy ServiceCIDR*',
  'node.k8s.io/v1': 'RuntimeClass*',
  'policy/v1': 'PodDisruptionBudget',
  'rbac.authorization.k8s.io/v1': 'ClusterRole* ClusterRoleBinding* Role RoleBinding',
  'resource.k8s.io/v1': 'DeviceClass* ResourceClaim ResourceClaimTemplate ResourceSlice*',
  'scheduling.k8s.io/v1': 'PriorityClass*',
  'storage.k8s.io/v1':
    'CSIDriver* CSINode* CSIStorageCapacity StorageClass* VolumeAttachment* VolumeAttributesClass*',
}

/** The minor version of Kubernetes 1 from which on a kind is there; the others are older than all that are supported. */
const addedWith: Readonly<Record<string, number>> = {
  'networking.k8s.io/v1 IPAddress': 33,
  'networking.k8s.io/v1 ServiceCIDR': 33,
  'resource.k8s.io/v1 DeviceClass': 34,
  'resource.k8s.io/v1 ResourceClaim': 34,
  'resource.k8s.io/v1 ResourceClaimTemplate': 34,
  'resource.k8s.io/v1 ResourceSlice': 34,
  'storage.k8s.io/v1 VolumeAttributesClass': 34,
}

/** The last minor version of which the kinds are known. */
export const lastKnownMinor = 34

/** Whether all kinds of a minor version are known; an older one also had some that are gone, a newer one may have more. */
export const areKindsKnown = (minor: number): boolean => minor === 33 || minor === lastKnownMinor

export interface BuiltInKind {
  readonly isNamespaced: boolean
}

const kinds = new Map<string, BuiltInKind>(
  Object.entries(recorded).flatMap(([apiVersion, names]) =>
    names
      .split(' ')
      .map((name) => [`${apiVersion} ${name.replace('*', '')}`, { isNamespaced: !name.endsWith('*') }]),
  ),
)

/** A kind of the API server itself. @param minor of Kubernetes 1 @returns undefined where that version has none of this name by default */
export function builtInKind(apiVersion: string, kind: string, minor: number): BuiltInKind | undefined {
  const key = `${apiVersion} ${kind}`
  return (addedWith[key] ?? 0) <= minor ? kinds.get(key) : undefined
}

const groups = new Set([
  ...Object.keys(recorded).map((each) => each.split('/').slice(0, -1).join('/')),
  'extensions',
])

/** Whether an API group is the API server's own, and not one that is added. */
export const isBuiltInGroup = (group: string): boolean => groups.has(group)
