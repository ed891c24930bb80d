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

/** A list of a kind of which two items may not have equal keys. */
interface KeyedList {
  /** Fields from the object to the list; `[]` at the end is each item of a list, `*` each value of a mapping. */
  readonly segments: readonly string[]
  readonly keys: Keys
  /** Values of absent keys. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Whether each key has to be there: an item without one is refused for that. */
  readonly needsAll: boolean
}

/** Lists of the kinds that custom resource definitions add, by `apiVersion kind`. */
export type CustomLists = Map<string, readonly KeyedList[]>

// Schemas of real definitions are some thirty levels deep.
const deepest = 64

/** Adds the lists of the kinds that objects define, by `x-kubernetes-list-type` of their schemas. */
export function addCustomLists(objects: readonly unknown[], lists: CustomLists): void {
  for (const object of objects) {
    if (!isRecord(object) || object.kind !== 'CustomResourceDefinition' || !isRecord(object.spec)) continue
    const { group, names, versions } = object.spec
    if (!isRecord(names) || !Array.isArray(versions)) continue
    for (const version of (versions as unknown[]).filter(isRecord)) {
      const schema = isRecord(version.schema) ? version.schema.openAPIV3Schema : undefined
      const kind = `${String(group)}/${String(version.name)} ${String(names.kind)}`
      lists.set(kind, listsOfSchema(schema, []))
    }
  }
}

function listsOfSchema(schema: unknown, segments: readonly string[]): readonly KeyedList[] {
  if (!isRecord(schema) || segments.length > deepest) return []
  const { properties, additionalProperties, items } = schema
  const last = segments.at(-1)
  const type = schema['x-kubernetes-list-type']
  const given = schema['x-kubernetes-list-map-keys']
  const keys = type === 'map' && Array.isArray(given) ? given.map(String) : []
  const own: readonly KeyedList[] =
    type === 'set' || keys.length > 0
      ? [{ segments, keys, defaults: defaultsIn(items, keys), needsAll: false }]
      : []
  return [
    ...own,
    ...(isRecord(properties) ? Object.entries(properties) : []).flatMap(([field, below]) =>
      listsOfSchema(below, [...segments, field]),
    ),
    ...(last === undefined || !isRecord(additionalProperties)
      ? []
      : listsOfSchema(additionalProperties, [...segments, '*'])),
    // Of lists in lists none has keys.
    ...(last === undefined || last.endsWith('[]') || !isRecord(items)
      ? []
      : listsOfSchema(items, [...segments.slice(0, -1), `${last}[]`])),
  ]
}

const defaultsIn = (items: unknown, keys: Keys): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    keys.flatMap((key) => {
      const field = isRecord(items) && isRecord(items.properties) ? items.properties[key] : undefined
      return isRecord(field) && field.default !== undefined ? [[key, field.default]] : []
    }),
  )

/** A list of which two items have equal keys. */
export interface ListWithKeyTwice {
  /** `spec.template.spec.containers[0].env`. */
  readonly path: string
  /** `name=MODE`; of a set the item. */
  readonly key: string
}

/**
 * The lists of an object that server-side apply refuses, since a key is in them twice. Pure.
 * @param custom lists of the kinds that are not built in; the API server refuses these however they are sent
 */
export function listsWithKeyTwice(
  object: unknown,
  custom: CustomLists = new Map(),
): readonly ListWithKeyTwice[] {
  if (!isRecord(object)) return []
  const { apiVersion, kind } = object
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return []
  const builtIn = { ...ofMetadata, ...ofKinds[`${groupOf(apiVersion)} ${kind}`] }
  const lists = [
    ...Object.entries(builtIn).map(([path, keys]): KeyedList => ({
      segments: path.split('.'),
      keys,
      defaults,
      needsAll: true,
    })),
    ...(custom.get(`${apiVersion} ${kind}`) ?? []),
  ]
  return lists.flatMap((list) =>
    listsAt(object, list.segments).flatMap(({ items, at }) => {
      const twice = keyTwice(items, list)
      return twice === undefined ? [] : [{ path: at, key: twice }]
    }),
  )
}

/** The lists at a path, with the indices of the items in which they are. */
function listsAt(value: unknown, segments: readonly string[], at = ''): { items: unknown[]; at: string }[] {
  const [segment, ...rest] = segments
  if (segment === undefined) return Array.isArray(value) ? [{ items: value as unknown[], at }] : []
  const [field = '', ofItems] = /^(.*?)(\[\])?$/s.exec(segment)?.slice(1) ?? []
  const isOfEach = field === '*'
  const fields = !isRecord(value) ? [] : isOfEach ? Object.keys(value) : [field]
  return fields.flatMap((name) => {
    const found = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
    const path = at === '' ? name : `${at}.${name}`
    if (ofItems === undefined) return listsAt(found, rest, path)
    if (!Array.isArray(found)) return []
    return (found as unknown[]).flatMap((item, index) => listsAt(item, rest, `${path}[${index}]`))
  })
}

/** The first key that is there again. An item without any key is refused for that. */
function keyTwice(items: readonly unknown[], { keys, defaults, needsAll }: KeyedList): string | undefined {
  const seen = new Set<string>()
  for (const item of items) {
    const values = keys.map((key) => (isRecord(item) ? (item[key] ?? defaults[key]) : undefined))
    const known = values.filter((value) => value !== undefined).length
    if (keys.length > 0 && (needsAll ? known < keys.length : known === 0)) continue
    const shown =
      keys.length === 0
        ? textOf(item)
        : keys
            .flatMap((key, index) => (values[index] === undefined ? [] : [`${key}=${textOf(values[index])}`]))
            .join(', ')
    if (seen.has(shown)) return shown
    seen.add(shown)
  }
  return undefined
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
