import { builtInNamespaces, isDnsLabel, isLabelValue, isQualifiedName } from '../../kubernetes/names.ts'
import { isRecord } from '../../base/json.ts'
import { type DesiredDrain, type DesiredNamespace, packIdOf } from '../desired/desired-state.ts'
import { mappingAt, textOf, valueAt, type Mapping } from './workspace.ts'
import type { Definition, Pack, Profile, ProfilePack } from '../../definition/definition.ts'
import type { RenderedText } from '../../definition/rules/macros.ts'
import { folderKey, foldersByKey, textsOfPack } from '../../definition/rules/sources.ts'
import { readPlain } from '../../definition/rules/plain-values.ts'

/** Settings in the key `pack:` of the values of a pack. */
interface PackSettings {
  /** Namespace of its charts, and of its objects that name none. */
  readonly namespace: string
  /** The namespaces to be made, each once. */
  readonly namespaces: readonly DesiredNamespace[]
  /** By the name of the chart. */
  readonly releaseNames: ReadonlyMap<string, string>
  /** `spectrocloud.com/install-priority`; lower goes first. */
  readonly priority: number
  /** `drainPods`, `podSelector` and `disableEviction`; undefined where its pods are not drained. */
  readonly drain: DesiredDrain | undefined
  /** `content.images`, as they are pulled. */
  readonly images: readonly string[]
  /** `content.charts`. */
  readonly charts: readonly { readonly name: string; readonly version: string }[]
  /** Unusable settings, each a sentence without an end. */
  readonly problems: readonly SettingsProblem[]
}

interface SettingsProblem {
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
  const pairs = (key: 'namespaceLabels' | 'namespaceAnnotations') => {
    const value = pack[key]
    if (!isRecord(value) && value !== undefined && value !== null && value !== '') {
      const message = `has ${key} that name no namespace; write NAMESPACE: key=value below it`
      problems.push({ code: 'NamespaceLabelInvalid', severity: 'error', message })
    }
    return pairsByNamespace(value)
  }
  const labels = pairs('namespaceLabels')
  const annotations = pairs('namespaceAnnotations')
  const named = [
    ...new Set([namespace, ...namesIn(pack.additionalNamespaces), ...labels.keys(), ...annotations.keys()]),
  ]
  const namespaces = named.flatMap((name): DesiredNamespace[] => {
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

// Values of the labels that set the strictness of the API server with pods (Pod Security Admission).
const podSecurity = /^pod-security\.kubernetes\.io\/(?:enforce|audit|warn)(-version)?$/
const levels = ['privileged', 'baseline', 'restricted']

function refuseLabels({ name, labels }: DesiredNamespace): string[] {
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

const refuseAnnotations = ({ name, annotations }: DesiredNamespace): string[] =>
  Object.keys(annotations)
    // The API server accepts upper-case letters in the owner of an annotation.
    .filter((key) => !isQualifiedName(key.toLowerCase()))
    .map((key) => `gives the namespace ${name} the annotation ${JSON.stringify(key)}; ${keyRule}`)

const keyRule =
  'a key has at most 63 letters, digits, -, _ and ., begins and ends with a letter or digit, and may have a domain and / before it'

// `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` or `!key`, with commas between.
const selectorForm = /^[-A-Za-z0-9_./=!, ()]+$/

/** `auto`, the default, drains only where there are several hosts, since on one the pods would be back at once. */
function readDrain(pack: Mapping, problems: SettingsProblem[]): DesiredDrain | undefined {
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

/** A pack of a profile with its texts, in which all macros are resolved. */
export interface ClusterPack {
  /** `DesiredPack.id` */
  readonly id: string
  readonly profile: Profile
  readonly pack: ProfilePack
  readonly folder: Pack | undefined
  /** Empty if its values are not a mapping, which is a problem of the definition. */
  readonly values: Mapping
  readonly settings: PackSettings
  readonly manifests: readonly ManifestText[]
}

export interface ManifestText {
  /** Key of its values below `manifests`: its name in the profile, or its file's without the ending. */
  readonly name: string
  readonly isTemplate: boolean
  readonly content: string
}

/** All packs of a definition in the order of its profiles. @param texts results of `renderDefinition` */
export function readClusterPacks(
  { profiles, packs }: Pick<Definition, 'profiles' | 'packs'>,
  texts: readonly RenderedText[],
): ClusterPack[] {
  const folders = foldersByKey(packs)
  // Packs with different display names share the text of their folder; its macros have the same values in all of them.
  const rendered = new Map(texts.map((text) => [text.place, text]))
  return profiles.flatMap((profile) =>
    profile.packs.map((pack, index): ClusterPack => {
      const folder = folders.get(folderKey(pack.name, pack.tag))
      const { values: ofValues, manifests } = textsOfPack(profile, index, folder)
      const [plain] = readPlain((ofValues && rendered.get(ofValues.place)?.content) ?? '').documents
      const values = isRecord(plain) ? plain : {}
      return {
        id: packId(profile, pack),
        profile,
        pack,
        folder,
        values,
        settings: readPackSettings(values),
        manifests: manifests.flatMap(({ place }) => {
          const text = rendered.get(place)
          const isStray =
            folder?.named.manifests?.includes(place) === false && place.startsWith(`${folder.place}/`)
          if (!text || isStray) return []
          const { isTemplate, content } = text
          return [{ name: manifestName(pack, place), isTemplate, content }]
        }),
      }
    }),
  )
}

export const packId = ({ uid }: Profile, { name, displayName }: ProfilePack): string =>
  packIdOf(uid, name, displayName)

/** The name of a manifest of a profile, by its place there; of a file of the folder otherwise. */
function manifestName({ manifests }: ProfilePack, place: string): string {
  const number = /\.manifests\[(\d+)\]\.content$/.exec(place)?.[1]
  const name = number === undefined ? undefined : manifests[Number(number)]?.name
  if (name !== undefined) return name || `manifest-${number}`
  return (place.split('/').at(-1) ?? '').replace(/\.ya?ml$/i, '')
}

/** Layers without which no cluster starts, in the order of their installation; all others are add-ons. */
const layers = ['os', 'k8s', 'cni', 'csi']

/**
 * Place of a pack in the installation: packs with a lower rank come before it. Objects of packs of the layers os and k8s come together with
 * the CNI, since a workload of theirs becomes available only with it.
 */
function rankOf({ pack, settings }: Pick<ClusterPack, 'pack' | 'settings'>): readonly [number, number] {
  const layer = layers.indexOf(pack.layer)
  return layer < 0 ? [layers.length, settings.priority] : [Math.max(layer, layers.indexOf('cni')), 0]
}

/** Compares packs by the order of their installation; 0 for packs that are independent. */
export function compareOrder(one: Pick<ClusterPack, 'pack' | 'settings'>, other: typeof one): number {
  const [first, second] = [rankOf(one), rankOf(other)]
  return first[0] - second[0] || first[1] - second[1]
}
