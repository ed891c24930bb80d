import { builtInNamespaces } from '../../../kubernetes/built-in-namespaces.ts'
import { isRecord } from '../../../base/json.ts'
import { isDnsLabel, isLabelValue, isQualifiedName } from '../../../kubernetes/names.ts'
import type { WantedDrain, WantedNamespace } from '../../wanted.ts'
import { mappingAt, textOf, valueAt, type Mapping } from './plain.ts'

/** What the key `pack:` of the values of a pack says. */
export interface PackSettings {
  /** Namespace of its charts, and of its objects that name none. */
  readonly namespace: string
  /** The namespaces to be made, each once. */
  readonly namespaces: readonly WantedNamespace[]
  /** By the name of the chart. */
  readonly releaseNames: ReadonlyMap<string, string>
  /** `spectrocloud.com/install-priority`; lower goes first. */
  readonly priority: number
  /** `drainPods`, `podSelector` and `disableEviction`; undefined where its pods are not drained. */
  readonly drain: WantedDrain | undefined
  /** `content.images`, as they are pulled. */
  readonly images: readonly string[]
  /** `content.charts`. */
  readonly charts: readonly { readonly name: string; readonly version: string }[]
  /** What in it cannot be used, each a sentence without an end. */
  readonly problems: readonly SettingsProblem[]
}

export interface SettingsProblem {
  readonly code: 'NamespaceInvalid' | 'NamespaceLabelInvalid' | 'PackPriorityInvalid' | 'PackDrainInvalid'
  readonly severity: 'error' | 'warning'
  readonly message: string
}

const priorityKey = 'spectrocloud.com/install-priority'

/** @param values of the pack, as plain values */
export function readPackSettings(values: unknown): PackSettings {
  const problems: SettingsProblem[] = []
  const pack = mappingAt(values, 'pack')
  const namespace = textOf(pack.namespace)?.trim() || 'default'
  const labels = pairsByNamespace(pack.namespaceLabels)
  const annotations = pairsByNamespace(pack.namespaceAnnotations)
  const named = [
    ...new Set([namespace, ...namesIn(pack.additionalNamespaces), ...labels.keys(), ...annotations.keys()]),
  ]
  const namespaces = named.flatMap((name): WantedNamespace[] => {
    if (!isDnsLabel(name)) {
      const message = `names the namespace ${JSON.stringify(name)}; a namespace has 1 to 63 small letters, digits and -`
      problems.push({ code: 'NamespaceInvalid', severity: 'error', message })
      return []
    }
    const own = { name, labels: labels.get(name) ?? {}, annotations: annotations.get(name) ?? {} }
    for (const message of [...refuseLabels(own), ...refuseAnnotations(own)])
      problems.push({ code: 'NamespaceLabelInvalid', severity: 'error', message })
    const isPlain = Object.keys(own.labels).length + Object.keys(own.annotations).length === 0
    return builtInNamespaces.has(name) && isPlain ? [] : [own]
  })
  return {
    namespace,
    namespaces,
    releaseNames: new Map(
      Object.entries(mappingAt(pack, 'releaseNameOverride')).flatMap(([chart, name]) => {
        const text = textOf(name)?.trim()
        return text ? [[chart, text]] : []
      }),
    ),
    priority: readPriority(pack[priorityKey] ?? valueAt(values, priorityKey), problems),
    drain: readDrain(pack, problems),
    images: listAt(pack, 'images').flatMap((each) => {
      const image = textOf(isRecord(each) ? each.image : each)?.trim()
      return image ? [image] : []
    }),
    charts: listAt(pack, 'charts').flatMap((each) => {
      const [name, version] = [textOf(valueAt(each, 'name')), textOf(valueAt(each, 'version'))]
      return name && version ? [{ name, version }] : []
    }),
    problems,
  }
}

// Values of the labels by which the API server is told how strict it is with pods (Pod Security Admission).
const podSecurity = /^pod-security\.kubernetes\.io\/(?:enforce|audit|warn)(-version)?$/
const levels = ['privileged', 'baseline', 'restricted']

function refuseLabels({ name, labels }: WantedNamespace): string[] {
  return Object.entries(labels).flatMap(([key, value]) => {
    const what = `gives the namespace ${name} the label ${JSON.stringify(key)}`
    if (!isQualifiedName(key)) return [`${what}; ${keyRule}`]
    if (!isLabelValue(value))
      return [
        `${what} with the value ${JSON.stringify(value)}; a value has at most 63 letters, digits, -, _ and .`,
      ]
    const security = podSecurity.exec(key)
    if (!security) return []
    const isVersion = security[1] !== undefined
    if (isVersion ? /^(?:latest|v1\.(?:0|[1-9]\d*))$/.test(value) : levels.includes(value)) return []
    const allowed = isVersion ? 'latest or a version such as v1.34' : levels.join(', ')
    return [
      `${what} with the value ${JSON.stringify(value)}; it must be ${isVersion ? '' : 'one of '}${allowed}`,
    ]
  })
}

const refuseAnnotations = ({ name, annotations }: WantedNamespace): string[] =>
  Object.keys(annotations)
    // The API server accepts upper-case letters in the owner of an annotation.
    .filter((key) => !isQualifiedName(key.toLowerCase()))
    .map((key) => `gives the namespace ${name} the annotation ${JSON.stringify(key)}; ${keyRule}`)

const keyRule =
  'a key has at most 63 letters, digits, -, _ and ., begins and ends with a letter or digit, and may have a domain and / before it'

// `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` or `!key`, with commas between.
const selectorForm = /^[-A-Za-z0-9_./=!, ()]+$/

/** `auto`, the default, drains only where there are several hosts, since on one the pods would be back at once. */
function readDrain(pack: Mapping, problems: SettingsProblem[]): WantedDrain | undefined {
  const problem = (message: string) =>
    void problems.push({ code: 'PackDrainInvalid', severity: 'error', message })
  const drain = textOf(pack.drainPods)?.trim().toLowerCase() ?? ''
  if (!['', 'auto', 'true', 'false'].includes(drain))
    problem(`has pack.drainPods ${JSON.stringify(drain)}; it must be auto, true or false`)
  const podSelector = textOf(pack.podSelector)?.trim() ?? ''
  if (podSelector !== '' && !selectorForm.test(podSelector))
    problem(
      `has pack.podSelector ${JSON.stringify(podSelector)}, which is not a label selector, such as app=web`,
    )
  const isEvictionDisabled = textOf(pack.disableEviction)?.trim().toLowerCase() === 'true'
  return drain === 'true' ? { podSelector, isEvictionDisabled } : undefined
}

function listAt(pack: unknown, name: string): readonly unknown[] {
  const found = valueAt(pack, 'content', name)
  return Array.isArray(found) ? found : []
}

const greatest = Number.MAX_SAFE_INTEGER

function readPriority(value: unknown, problems: SettingsProblem[]): number {
  const text = textOf(value)?.trim()
  if (text === undefined || text === '') return 0
  // The differences of the largest stay exact.
  if (/^[-+]?[0-9]+$/.test(text)) return Math.max(-greatest, Math.min(greatest, Number(text)))
  const message = `has ${priorityKey} ${JSON.stringify(text)}, which is not an integer; 0 is taken`
  problems.push({ code: 'PackPriorityInvalid', severity: 'warning', message })
  return 0
}

/** A list, a text with commas, or a mapping whose keys are the names. */
function namesIn(value: unknown): string[] {
  const all = isRecord(value) ? Object.keys(value) : Array.isArray(value) ? (value as unknown[]) : [value]
  return all.flatMap((each) => (textOf(each) ?? '').split(',')).flatMap((name) => name.trim() || [])
}

/** `namespace: k=v,k=v`; the pairs may also be a list or a mapping. */
function pairsByNamespace(value: unknown): Map<string, Readonly<Record<string, string>>> {
  if (!isRecord(value)) return new Map()
  return new Map(Object.entries(value).map(([name, pairs]) => [name.trim(), pairsIn(pairs)]))
}

function pairsIn(value: unknown): Readonly<Record<string, string>> {
  if (isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, textOf(each) ?? '']))
  return Object.fromEntries(
    namesIn(value).map((pair) => {
      const equals = pair.indexOf('=')
      return equals < 0 ? [pair, ''] : [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]
    }),
  )
}
