import type { KubernetesObject } from '../../kubernetes/client.ts'
import { addCustomLists, listsWithKeyTwice, type CustomLists } from '../../kubernetes/list-keys.ts'
import { isRecord, jsonForYaml } from '../../base/json.ts'
import { readPlain } from '../../definition/rules/plain-values.ts'
import { mappingAt, textOf, valueAt, type PackReport, pathPartOf, type Workspace } from './workspace.ts'
import { join } from 'node:path'
import type { DesiredManifest } from '../desired/desired-state.ts'
import type { ClusterPack, ManifestText } from './packs.ts'
import type { Helm } from './helm.ts'
import { mergeImages, type NeededImage } from '../needs/needs.ts'
import { guessInTemplate, type GuessedImage } from '../../definition/rules/images.ts'
import { installedObject, type InstalledObject, type Installation } from './installed.ts'

/** The objects of a YAML text that is ready to be applied. */
interface ReadObjects {
  readonly objects: readonly KubernetesObject[]
  /** Why the text cannot be applied, each as the end of a sentence; then there are no objects. */
  readonly problems: readonly string[]
}

// A file with more problems usually has one cause.
const problemLimit = 5

/**
 * The objects of a text, the items of lists as objects of their own.
 * @param custom lists of the kinds that earlier texts define; those of this one are added
 */
export function readObjects(text: string, custom: CustomLists = new Map()): ReadObjects {
  const { documents, problems } = readPlain(text)
  const found = documents.flatMap(itemsOf)
  addCustomLists(found, custom)
  const wrong = [...problems, ...found.flatMap((each, index) => refuseObject(each, index, custom))]
  if (wrong.length > 0) return { objects: [], problems: wrong.slice(0, problemLimit) }
  return { objects: found as KubernetesObject[], problems: [] }
}

/** The items of a list of any kind, as kubectl applies them. */
export function itemsOf(document: unknown): readonly unknown[] {
  const isList = isRecord(document) && textOf(document.kind)?.endsWith('List') === true
  // Rest of a template of a list without items.
  if (isList && document.kind === 'List' && (document.items ?? null) === null) return []
  return isList && Array.isArray(document.items) ? (document.items as unknown[]).flatMap(itemsOf) : [document]
}

function refuseObject(value: unknown, index: number, custom: CustomLists): string[] {
  const at = `has object ${index + 1}`
  if (!isRecord(value)) return [`${at}, which is not a mapping`]
  const missing = ['apiVersion', 'kind'].find((field) => !isText(value[field]))
  if (missing !== undefined) return [`${at} without ${missing}`]
  const what = `${at}, a ${String(value.kind)},`
  const { name } = mappingAt(value, 'metadata')
  if (isText(name))
    return listsWithKeyTwice(value, custom).map(
      ({ path, key }) =>
        `${what} ${String(name)}, whose list ${path} has ${key} twice; Kubernetes applies no such list, so leave one out`,
    )
  return isText(valueAt(value, 'metadata', 'generateName'))
    ? [`${what} with generateName; it cannot be applied again, so give it a name`]
    : [`${what} without metadata.name`]
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])

/** The images of containers and of image volumes in objects; each once. */
export function imagesIn(objects: readonly unknown[]): string[] {
  const images = new Set<string>()
  const waiting: unknown[] = [...objects]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) waiting.push(...(value as unknown[]).filter((each) => each !== undefined))
    if (!isRecord(value)) continue
    for (const [key, below] of Object.entries(value)) {
      if (below === null || typeof below !== 'object') continue
      waiting.push(below)
      if (!Array.isArray(below)) continue
      for (const item of below as unknown[]) {
        const image = containerLists.has(key)
          ? valueAt(item, 'image')
          : key === 'volumes'
            ? valueAt(item, 'image', 'reference')
            : undefined
        if (typeof image === 'string' && image.trim() !== '') images.add(image.trim())
      }
    }
  }
  return [...images].sort()
}

/** The specification of the pods of a workload; undefined for any other object. */
const podSpecOf = (object: unknown): unknown =>
  valueAt(object, 'spec', 'template', 'spec') ??
  valueAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec') ??
  (valueAt(object, 'kind') === 'Pod' ? valueAt(object, 'spec') : undefined)

const textsOf = (value: unknown) =>
  Array.isArray(value) ? (value as unknown[]).flatMap((each) => textOf(each) ?? []) : []

/** Labels of nodes that name what their programs are made for; `beta.` is the older name of the first. */
const platformLabels = [
  'kubernetes.io/arch',
  'beta.kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/os',
]

/**
 * Architectures of the nodes to which the pods of an object are bound, or `windows`; undefined if to none. The terms of an affinity
 * count if each of them names some.
 */
function platformsOf(object: unknown): readonly string[] | undefined {
  const spec = podSpecOf(object)
  const selector = mappingAt(spec, 'nodeSelector')
  const selected = platformLabels.flatMap((label) => textOf(selector[label]) ?? [])
  const terms = valueAt(
    spec,
    ...['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'],
  )
  const bound = (Array.isArray(terms) ? (terms as unknown[]) : []).map((term) => {
    const expressions = valueAt(term, 'matchExpressions')
    return (Array.isArray(expressions) ? (expressions as unknown[]) : [])
      .filter((each) => valueAt(each, 'operator') === 'In')
      .filter((each) => platformLabels.includes(textOf(valueAt(each, 'key')) ?? ''))
      .flatMap((each) => textsOf(valueAt(each, 'values')))
      .filter(isPlatform)
  })
  const found = new Set([
    ...selected.filter(isPlatform),
    ...(bound.every(({ length }) => length > 0) ? bound.flat() : []),
  ])
  return found.size === 0 ? undefined : [...found].sort()
}

// Every node is one of Linux.
const isPlatform = (name: string) => name !== 'linux'

/** The images of objects, each with what may keep it from being needed. @param hookOf the events of an object that is a hook of helm */
export const neededImages = (
  objects: readonly unknown[],
  hookOf: (object: unknown) => string | undefined = () => undefined,
): NeededImage[] =>
  mergeImages(
    objects.flatMap((object) => {
      const [hook, onlyOn] = [hookOf(object), platformsOf(object)]
      return imagesIn([object]).map((image) => ({
        image,
        ...(hook === undefined ? {} : { hook }),
        ...(onlyOn === undefined ? {} : { onlyOn }),
      }))
    }),
  )

const isDefinition = (object: unknown) => valueAt(object, 'kind') === 'CustomResourceDefinition'

/** The names of custom resource definitions. */
export const definitionsIn = (objects: readonly unknown[]): string[] =>
  objects.filter(isDefinition).flatMap((object) => textOf(valueAt(object, 'metadata', 'name')) ?? [])

/** The versions of the API that custom resource definitions add, as `helm template --api-versions` takes them. */
export function apiVersionsIn(objects: readonly unknown[]): string[] {
  return objects.filter(isDefinition).flatMap((object) => {
    const [group, kind] = [
      textOf(valueAt(object, 'spec', 'group')),
      textOf(valueAt(object, 'spec', 'names', 'kind')),
    ]
    const versions = valueAt(object, 'spec', 'versions')
    if (!group || !kind || !Array.isArray(versions)) return []
    return (versions as unknown[]).flatMap((each) => {
      const version = textOf(valueAt(each, 'name'))
      return version ? [`${group}/${version}`, `${group}/${version}/${kind}`] : []
    })
  })
}

/** Rendered parts of a pack: manifests or charts. */
export interface Rendered<Item> {
  readonly desired: readonly Item[]
  readonly images: readonly NeededImage[]
  /** Names of its custom resource definitions. */
  readonly definitions: readonly string[]
  /** Sums that the digest of the pack covers. */
  readonly sums: readonly string[]
  readonly installations: readonly Installation[]
}

export interface RenderEdges {
  readonly workspace: Workspace
  /** Undefined if this host has none. */
  readonly helm: Helm | undefined
  /** Versions of the API that the packs before and this one add; added to. */
  readonly apiVersions: Set<string>
  /** Lists of the kinds that the packs before and this one define; added to. */
  readonly customLists: CustomLists
  readonly report: PackReport
}

/** The folder of helm's input for manifests; it is of no use afterwards. @param place folder of the pack */
export const templatesIn = (place: string): string => join(place, 'templates')

/** Renders the manifests of a pack, and judges their objects. @param place folder of the pack in the workspace */
export async function renderManifests(
  clusterPack: ClusterPack,
  place: string,
  edges: RenderEdges,
): Promise<Rendered<DesiredManifest>> {
  const { workspace, report, apiVersions, customLists } = edges
  const desired: DesiredManifest[] = []
  const images: NeededImage[] = []
  const definitions: string[] = []
  const sums: string[] = []
  const installed: InstalledObject[] = []
  const { namespace } = clusterPack.settings
  for (const [index, manifest] of clusterPack.manifests.entries()) {
    const text = manifest.isTemplate
      ? await renderTemplate(clusterPack, manifest, join(templatesIn(place), String(index)), edges)
      : manifest.content
    if (text === undefined) {
      images.push(...guessInTemplate(manifest.content).map(guessed))
      continue
    }
    const { objects, problems } = readObjects(text, customLists)
    for (const problem of problems) report('ManifestInvalid', `manifest ${manifest.name} ${problem}`)
    if (objects.length === 0) continue
    images.push(...neededImages(objects))
    for (const version of apiVersionsIn(objects)) apiVersions.add(version)
    definitions.push(...definitionsIn(objects))
    installed.push(...objects.flatMap((object) => installedObject(object, 'manifest') ?? []))
    const file = join(place, 'manifests', `${index}-${pathPartOf(manifest.name)}.jsonl`)
    const sum = await workspace.write(file, objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
    sums.push(`${manifest.name}\0${namespace}\0${sum}`)
    desired.push({ name: manifest.name, namespace, file, sum })
  }
  const installations = [{ namespace, release: '', objects: installed }]
  return { desired, images, definitions, sums, installations }
}

/** An image that values or a template name, of which nothing was rendered. */
export const guessed = ({ image, isTagKnown }: GuessedImage): NeededImage => ({
  image,
  guess: { isTagKnown },
})

/** Renders a manifest as the only template of a chart. @returns undefined if that is not possible, which is reported */
async function renderTemplate(
  { pack, values, settings }: ClusterPack,
  { name, content }: ManifestText,
  folder: string,
  { workspace, helm, apiVersions, report }: RenderEdges,
): Promise<string | undefined> {
  if (!helm) {
    report('HelmMissing', `manifest ${name} is a template, which helm renders, and this host has no helm`)
    return undefined
  }
  const chart = { apiVersion: 'v2', name: pathPartOf(pack.name), version: '0.0.0' }
  const valuesFile = join(folder, 'values.json')
  await workspace.write(join(folder, 'chart', 'Chart.yaml'), jsonForYaml(chart))
  await workspace.write(join(folder, 'chart', 'templates', 'manifest.yaml'), content)
  await workspace.write(valuesFile, jsonForYaml(mappingAt(values, 'manifests', name)))
  const result = await helm.render({
    release: releaseFor(pack.name),
    namespace: settings.namespace,
    chart: join(workspace.folder, folder, 'chart'),
    valuesFile: join(workspace.folder, valuesFile),
    apiVersions: [...apiVersions],
  })
  if ('text' in result) return result.text
  report(result.code ?? 'ManifestInvalid', `manifest ${name} ${result.refusal}`)
  return undefined
}

/** A manifest has no release; a template may use its name. */
const releaseFor = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .slice(0, 53)
    .replace(/^-+|-+$/g, '') || 'manifest'
