import { isRecord } from '../base/json.ts'
import { groupOf } from './paths.ts'

/** Key fields of the items of a list; none for a set, where the item is the key. */
type Keys = readonly string[]
/** Lists by their path; `[]` is each item of a list before it. */
type Lists = Readonly<Record<string, Keys>>

const name: Keys = ['name']

const below = (path: string, lists: Lists): Lists =>
  Object.fromEntries(Object.entries(lists).map(([each, keys]) => [`${path}.${each}`, keys]))

const sets = (path: string, ...fields: readonly string[]): Lists =>
  Object.fromEntries(fields.map((field) => [`${path}.${field}`, []]))

/** Of all objects and pod templates. */
const ofMetadata: Lists = { 'metadata.finalizers': [], 'metadata.ownerReferences': ['uid'] }

const container: Lists = {
  env: name,
  ports: ['containerPort', 'protocol'],
  volumeDevices: ['devicePath'],
  volumeMounts: ['mountPath'],
  'resources.claims': name,
  'restartPolicyRules[].exitCodes.values': [],
}

const pod: Lists = {
  containers: name,
  initContainers: name,
  ephemeralContainers: name,
  volumes: name,
  imagePullSecrets: name,
  resourceClaims: name,
  schedulingGates: name,
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
  'resources.claims': name,
  ...below('volumes[].ephemeral.volumeClaimTemplate', ofMetadata),
  ...below('containers[]', container),
  ...below('initContainers[]', container),
  ...below('ephemeralContainers[]', container),
}
/** A template of pods. */
const ofTemplate = (path: string): Lists => ({ ...below(`${path}.spec`, pod), ...below(path, ofMetadata) })
const template = ofTemplate('spec.template')
const failurePolicy: Lists = { 'podFailurePolicy.rules[].onExitCodes.values': [] }
const webhooks: Lists = { webhooks: name, 'webhooks[].matchConditions': name }

/**
 * The lists of built-in kinds of which server-side apply refuses two items with equal keys, by group and kind: `x-kubernetes-list-type` and
 * `x-kubernetes-list-map-keys` in /openapi/v2 of 1.34.4. Lists of a status are left out: nothing applies them.
 */
const ofKinds: Readonly<Record<string, Lists>> = {
  ' Pod': below('spec', pod),
  ' PodTemplate': ofTemplate('template'),
  ' ReplicationController': template,
  ' Service': { 'spec.ports': ['port', 'protocol'] },
  ' ServiceAccount': { secrets: name },
  'apps DaemonSet': template,
  'apps Deployment': template,
  'apps ReplicaSet': template,
  'apps StatefulSet': { ...template, ...below('spec.volumeClaimTemplates[]', ofMetadata) },
  'batch Job': { ...template, ...below('spec', failurePolicy) },
  'batch CronJob': {
    ...ofTemplate('spec.jobTemplate.spec.template'),
    ...below('spec.jobTemplate.spec', failurePolicy),
    ...below('spec.jobTemplate', ofMetadata),
  },
  'discovery.k8s.io EndpointSlice': { 'endpoints[].addresses': [] },
  'flowcontrol.apiserver.k8s.io FlowSchema': {
    ...sets('spec.rules[].resourceRules[]', 'verbs', 'apiGroups', 'resources', 'namespaces'),
    ...sets('spec.rules[].nonResourceRules[]', 'verbs', 'nonResourceURLs'),
  },
  'resource.k8s.io ResourceClaimTemplate': below('spec', ofMetadata),
  ' Node': { 'spec.podCIDRs': [] },
  'storage.k8s.io CSIDriver': { 'spec.volumeLifecycleModes': [] },
  'storage.k8s.io CSINode': { 'spec.drivers': name },
  'admissionregistration.k8s.io MutatingWebhookConfiguration': webhooks,
  'admissionregistration.k8s.io ValidatingWebhookConfiguration': webhooks,
  'admissionregistration.k8s.io MutatingAdmissionPolicy': { 'spec.matchConditions': name },
  'admissionregistration.k8s.io ValidatingAdmissionPolicy': {
    'spec.matchConditions': name,
    'spec.variables': name,
  },
  'admissionregistration.k8s.io ValidatingAdmissionPolicyBinding': { 'spec.validationActions': [] },
}

/** Defaults of the API server for absent keys. */
const defaults: Readonly<Record<string, string>> = { protocol: 'TCP' }

/** A list of which two items have equal keys. */
export interface ListWithKeyTwice {
  /** `spec.template.spec.containers[0].env`. */
  readonly path: string
  /** `name=MODE`; of a set the item. */
  readonly key: string
}

/** The lists of an object that server-side apply refuses, since a key is in them twice. Pure. */
export function listsWithKeyTwice(object: unknown): readonly ListWithKeyTwice[] {
  if (!isRecord(object)) return []
  const { apiVersion, kind } = object
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return []
  const lists = { ...ofMetadata, ...ofKinds[`${groupOf(apiVersion)} ${kind}`] }
  return Object.entries(lists).flatMap(([path, keys]) =>
    listsAt(object, path.split('.')).flatMap(({ items, at }) => {
      const twice = keyTwice(items, keys)
      return twice === undefined ? [] : [{ path: at, key: twice }]
    }),
  )
}

/** The lists at a path, with the indices of the items in which they are. */
function listsAt(value: unknown, segments: readonly string[], at = ''): { items: unknown[]; at: string }[] {
  const [segment, ...rest] = segments
  if (segment === undefined) return Array.isArray(value) ? [{ items: value as unknown[], at }] : []
  const field = segment.replace('[]', '')
  const found = isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined
  const path = at === '' ? field : `${at}.${field}`
  if (field === segment) return listsAt(found, rest, path)
  if (!Array.isArray(found)) return []
  return (found as unknown[]).flatMap((item, index) => listsAt(item, rest, `${path}[${index}]`))
}

/** The first key that is there again. An item without a key is refused for that. */
function keyTwice(items: readonly unknown[], keys: Keys): string | undefined {
  const seen = new Set<string>()
  for (const item of items) {
    const values = keys.map((key) => (isRecord(item) ? (item[key] ?? defaults[key]) : undefined))
    if (values.includes(undefined)) continue
    const shown =
      keys.length === 0
        ? textOf(item)
        : keys.map((key, index) => `${key}=${textOf(values[index])}`).join(', ')
    if (seen.has(shown)) return shown
    seen.add(shown)
  }
  return undefined
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
