import { isRecord, jsonForYaml } from '../../base/json.ts'
import { addCustomLists, listsWithKeyTwice, type CustomLists } from '../../kubernetes/list-keys.ts'
import { installedObject, type InstalledObject, type Installation } from './installed.ts'
import {
  itemsOf,
  type Rendered,
  type RenderEdges,
  apiVersionsIn,
  definitionsIn,
  guessed,
  neededImages,
} from './manifests.ts'
import { readPlain, type PlainText } from '../../definition/rules/plain-values.ts'
import { textOf, valueAt, mappingAt, type Mapping, hashOf, pathPartOf } from './workspace.ts'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { guessFromValues } from '../../definition/rules/images.ts'
import type { NeededImage } from '../needs/needs.ts'
import { readChartFile } from '../../archive/chart-archive.ts'
import { AppError } from '../../errors/app-error.ts'
import type { DesiredChart } from '../desired/desired-state.ts'
import type { ClusterPack } from './packs.ts'
import { releaseBytes, secretBytes } from './helm.ts'

/** The read parts of a rendered chart. */
interface RenderedChart {
  /** Whole objects, of those that may have images or define kinds. */
  readonly objects: readonly unknown[]
  /** All objects of an installation, hooks included. */
  readonly installed: readonly InstalledObject[]
  /** Why helm cannot install the rendered objects, each with its file and as the end of a sentence. */
  readonly problems: readonly string[]
  /** Lists with a key twice, each with its file: helm installs them, and the API server takes those that it does not check. */
  readonly warnings: readonly string[]
  /** Parts that helm keeps in the release: all but the files of `crds/`. */
  readonly kept: readonly string[]
}

// To parse all of a large chart would take seconds.
const readWhole = /image|CustomResourceDefinition|^\s*["']?kind["']?:.*(?:Role|List|Service|Webhook)/m
// At the beginning of a line: other forms are parsed.
const kindLine = /^kind\s*:\s*\S/m
const versionLine = /^apiVersion\s*:\s*\S/m
const sourceLine = /^\s*# Source: (\S+)\n/
// In the folder of the chart, or of one that it depends on; not the folder of templates of this name.
const ofCrds = /^[^/]+\/(?:charts\/[^/]+\/)*crds\//

// helm creates objects without server-side apply; of the lists with a key twice the validation of the API server refuses these only:
// pkg/apis/core/validation and pkg/apis/admissionregistration/validation.
const ofBuiltIns =
  /(?:^|\.)(?:containers|initContainers|volumes|volumeMounts|volumeDevices|topologySpreadConstraints|webhooks)$|^spec\.ports$/
// Of custom kinds those that their schema names.
const isRefused = (object: unknown, path: string, custom: CustomLists) =>
  custom.has(`${textOf(valueAt(object, 'apiVersion'))} ${textOf(valueAt(object, 'kind'))}`)
    ? !path.startsWith('metadata.')
    : ofBuiltIns.test(path)

/**
 * Reads the output of `helm template`. helm itself parses neither the files of `crds/` nor looks for the kind of an object before it
 * installs them.
 * @param custom lists of the kinds that are defined before; those of the kinds of this chart are added
 */
export function readRenderedChart(text: string, custom: CustomLists = new Map()): RenderedChart {
  const objects: unknown[] = []
  const installed: InstalledObject[] = []
  const problems: string[] = []
  const warnings: string[] = []
  const kept: string[] = []
  for (const document of text.split(/^---$/m)) {
    const source = sourceLine.exec(document)?.[1]
    const isOfCrds = source !== undefined && ofCrds.test(source)
    if (!isOfCrds) kept.push(document)
    const content = document.replace(sourceLine, '')
    const isNamed = kindLine.test(content) && versionLine.test(content)
    const isWhole = !isNamed || readWhole.test(content)
    const file = source ?? 'a template'
    const read = isWhole ? readPlain(content) : readHead(content)
    // helm has parsed all others, and takes readable ones.
    if (isOfCrds) problems.push(...read.problems.map((problem) => `has ${file}, which ${problem}`))
    for (const object of read.documents.flatMap(itemsOf)) {
      const missing = ['apiVersion', 'kind'].find((field) => !isRecord(object) || !object[field])
      if (missing !== undefined) {
        problems.push(`has in ${file} an object without ${missing}`)
        continue
      }
      if (isWhole) objects.push(object)
      addCustomLists(isWhole ? [object] : [], custom)
      for (const { path, key } of isWhole ? listsWithKeyTwice(object, custom) : []) {
        const which = `has in ${file} a ${textOf(valueAt(object, 'kind'))} ${textOf(valueAt(object, 'metadata', 'name')) ?? ''}, whose list ${path} has ${key} twice`
        if (isRefused(object, path, custom))
          problems.push(`${which}; Kubernetes refuses it, so leave one out`)
        else
          warnings.push(
            `${which}; server-side apply refuses it and a later change may lose both, so leave one out`,
          )
      }
      const from = isOfCrds ? 'crds' : fromOf(object)
      const found = from && installedObject(object, from)
      if (found) installed.push(found)
    }
  }
  return { objects, installed, problems, warnings, kept }
}

/** The events of a hook of a chart; undefined for any other object. */
const hookOf = (object: unknown): string | undefined =>
  textOf(valueAt(object, 'metadata', 'annotations', 'helm.sh/hook')) || undefined

/** Undefined for a hook that an installation does not run; one of an unknown event is left out by helm altogether. */
function fromOf(object: unknown): 'template' | 'hook' | undefined {
  const hook = hookOf(object)
  if (hook === undefined) return 'template'
  return /(?:^|,)\s*(?:pre|post)-install\s*(?:,|$)/i.test(hook) ? 'hook' : undefined
}

const headKey = /^(?:apiVersion|kind|metadata)\s*:/

/**
 * The first fields of an object in block style, without the rest of the text, which is often most of it: in block style a line with
 * text in its first column begins a field.
 */
function readHead(document: string): PlainText {
  let isKept = false
  const lines = document.split('\n').filter((line) => {
    if (/^[^\s#]/.test(line)) isKept = headKey.test(line)
    return isKept
  })
  const read = readPlain(lines.join('\n'))
  const isHead =
    read.documents.length === 1 &&
    ['apiVersion', 'kind', 'metadata'].every((field) => valueAt(read.documents[0], field))
  return isHead ? read : readPlain(document)
}

export interface ChartEdges extends RenderEdges {
  /** Folder with the unpacked definition, below the workspace. */
  readonly content: string
  /** Files of charts that the definition does not contain, by `name:version`; null for one that is not in the content. */
  readonly elsewhere: Readonly<Record<string, string | null>>
  /** Packs by their releases, `namespace/release`; added to. */
  readonly releases: Map<string, string>
}

/** Charts of a pack that come from the content, as `name:version`: the listed ones, otherwise the one of its own name. */
export function chartsElsewhere({ pack, folder, settings, manifests }: ClusterPack): string[] {
  if (folder || pack.layer === 'os' || pack.layer === 'k8s' || pack.type === 'manifest') return []
  if (settings.charts.length > 0) return settings.charts.map(({ name, version }) => `${name}:${version}`)
  const isChart = pack.type === 'helm' || pack.type === 'oci' || manifests.length === 0
  return isChart ? [`${pack.name}:${pack.tag}`] : []
}

/** A chart archive in the workspace. */
interface ChartFile {
  /** Its name in messages. */
  readonly shown: string
  /** Relative to the workspace. */
  readonly file: string
  /** The folder that it was packed from, relative to the workspace. */
  readonly packedFrom?: string
}

/** Takes out the charts of a pack, and renders each for its images. @param place folder of the pack in the workspace */
export async function prepareCharts(
  clusterPack: ClusterPack,
  place: string,
  edges: ChartEdges,
): Promise<Rendered<DesiredChart>> {
  const { workspace, report } = edges
  const files = [
    ...(await takeOwn(clusterPack, place, edges)),
    ...(await takeElsewhere(clusterPack, place, edges)),
  ]
  const desired: DesiredChart[] = []
  const images: NeededImage[] = []
  let renderedCount = 0
  const definitions: string[] = []
  const sums: string[] = []
  const installations: Installation[] = []
  for (const { shown, file, packedFrom } of files) {
    const about = await readAbout(join(workspace.folder, file))
    if ('refusal' in about) {
      report('ChartInvalid', `chart ${shown} ${about.refusal}`)
      continue
    }
    const { name, version } = about
    const { namespace } = clusterPack.settings
    const release = releaseOf(clusterPack, name, edges)
    const valuesFile = join(place, 'charts', `${pathPartOf(name)}-${desired.length}.values.yaml`)
    const valuesSum = await workspace.write(valuesFile, jsonForYaml(valuesOf(clusterPack, name)))
    // The archive of a folder contains the time when it was packed.
    const sum = packedFrom
      ? await sumOfFolder(join(workspace.folder, packedFrom))
      : hashOf(await readFile(join(workspace.folder, file)))
    const chart: DesiredChart = { name, version, release, namespace, file, sum, valuesFile, valuesSum }
    sums.push([name, version, release, namespace, sum, valuesSum].join('\0'))
    desired.push(chart)
    const rendered = await renderChart(chart, shown, edges)
    if (rendered) renderedCount += 1
    const { objects, installed } = rendered ?? { objects: [], installed: [] }
    images.push(...neededImages(objects, hookOf))
    definitions.push(...definitionsIn(objects))
    installations.push({ namespace, release, objects: installed })
  }
  // Of a pack that lists its images none is guessed.
  if (renderedCount < countCharts(clusterPack) && clusterPack.settings.images.length === 0)
    images.push(...guessFromValues(jsonForYaml(clusterPack.values)).map(guessed))
  return { desired, images, definitions, sums, installations }
}

const ownCharts = ({ folder }: ClusterPack) => folder?.named.charts ?? folder?.charts ?? []

/** The number of charts of a pack, in the definition and in the content. */
export const countCharts = (pack: ClusterPack): number =>
  ownCharts(pack).length + chartsElsewhere(pack).length

/** SHA-256 over the names and contents of the files of a folder. */
async function sumOfFolder(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const sums = await Promise.all(
    files.sort().map(async (file) => [relative(folder, file), hashOf(await readFile(file))]),
  )
  return hashOf(JSON.stringify(sums))
}

/** The charts of the folder of a pack: the ones in pack.json, otherwise all. */
async function takeOwn(pack: ClusterPack, place: string, edges: ChartEdges): Promise<ChartFile[]> {
  const { workspace, helm, content, report } = edges
  const taken: ChartFile[] = []
  for (const chart of ownCharts(pack)) {
    const from = join(content, chart)
    const to = join(place, 'charts')
    if ((await stat(join(workspace.folder, from))).isDirectory()) {
      const whole = (path: string) => join(workspace.folder, path)
      const packed = helm && (await helm.pack(whole(from), whole(to)))
      if (!packed)
        report('HelmMissing', `chart ${chart} is a folder, which helm packs, and this host has no helm`)
      else if ('refusal' in packed) report(packed.code ?? 'ChartInvalid', `chart ${chart} ${packed.refusal}`)
      else taken.push({ shown: chart, file: join(to, basename(packed.file)), packedFrom: from })
    } else {
      const file = join(to, `${taken.length}-${pathPartOf(basename(chart))}`)
      await workspace.link(from, file)
      taken.push({ shown: chart, file })
    }
  }
  return taken
}

async function takeElsewhere(
  clusterPack: ClusterPack,
  place: string,
  edges: ChartEdges,
): Promise<ChartFile[]> {
  const { workspace, elsewhere, report } = edges
  const taken: ChartFile[] = []
  for (const chart of chartsElsewhere(clusterPack)) {
    const from = elsewhere[chart]
    if (!from) {
      const isOnlyName = clusterPack.settings.charts.length === 0 && clusterPack.pack.type === 'spectro'
      report(
        'ChartMissing',
        isOnlyName
          ? `it is not in the definition, and no whole content bundle of this host has a chart ${chart}`
          : `chart ${chart} is neither in the definition nor in a whole content bundle of this host`,
      )
      continue
    }
    const file = join(place, 'charts', `${taken.length}-${pathPartOf(chart)}.tgz`)
    await workspace.copy(from, file)
    taken.push({ shown: chart, file })
  }
  return taken
}

/** Name and version of a chart; or why it cannot be used. */
async function readAbout(
  file: string,
): Promise<{ readonly name: string; readonly version: string } | { readonly refusal: string }> {
  const found = await readChartFile(file).catch((error: unknown) => {
    if (error instanceof AppError) return { refusal: `cannot be read: ${error.message}` }
    throw error
  })
  if ('refusal' in found) return found
  const [chart] = readPlain(found.text).documents
  const [name, version] = [textOf(valueAt(chart, 'name')), textOf(valueAt(chart, 'version'))]
  return name && version ? { name, version } : { refusal: 'has a Chart.yaml without name or version' }
}

/** The values of a chart: `charts.<name>`. Without a key `charts`, a pack that is a chart of a registry has them beside `pack`. */
function valuesOf({ pack, folder, values }: ClusterPack, name: string): Mapping {
  const isBare = !folder && (pack.type === 'helm' || pack.type === 'oci') && !('charts' in values)
  if (!isBare) return mappingAt(values, 'charts', name)
  return Object.fromEntries(Object.entries(values).filter(([key]) => key !== 'pack' && key !== 'manifests'))
}

// Names of releases that helm accepts.
const releaseForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const releaseCharacters = 53
const isRelease = (name: string) => name.length <= releaseCharacters && releaseForm.test(name)

/** The platform documents `packName-chartName` as the name of a release without an override. */
function releaseOf(
  { id, pack, settings }: ClusterPack,
  chart: string,
  { releases, report }: ChartEdges,
): string {
  const release = settings.releaseNames.get(chart) ?? `${pack.name}-${chart}`
  const advice = `give it another one: pack.releaseNameOverride.${chart} in the values of the pack`
  if (!isRelease(release))
    report(
      'ReleaseInvalid',
      `the release of chart ${chart} would be ${JSON.stringify(release)}; a name has at most ${releaseCharacters} small letters, digits, - and .; ${advice}`,
    )
  const key = `${settings.namespace}/${release}`
  const other = releases.get(key)
  if (other !== undefined)
    report(
      'ReleaseTwice',
      `the release ${release} of chart ${chart} is in namespace ${settings.namespace} that of another chart of ${other === id ? 'the pack' : `the pack ${other}`}; ${advice}`,
    )
  releases.set(key, id)
  return release
}

// Objects of one chart with more problems usually have one cause.
const problemLimit = 5

/** @returns the objects of the rendered chart; those that are read whole may have images or be definitions; undefined if it was not rendered */
async function renderChart(
  chart: DesiredChart,
  shown: string,
  edges: ChartEdges,
): Promise<Pick<RenderedChart, 'objects' | 'installed'> | undefined> {
  const { workspace, helm, apiVersions, customLists, report } = edges
  if (!helm) {
    report('HelmMissing', `chart ${shown} is installed by helm, and this host has no helm`)
    return undefined
  }
  const { release, namespace } = chart
  if (!isRelease(release)) return undefined
  const archive = join(workspace.folder, chart.file)
  const valuesFile = join(workspace.folder, chart.valuesFile)
  const result = await helm.render({
    release,
    namespace,
    apiVersions: [...apiVersions],
    chart: archive,
    valuesFile,
  })
  if ('refusal' in result) {
    report(result.code ?? 'ChartInvalid', `chart ${shown} ${result.refusal}`)
    return undefined
  }
  const { objects, installed, problems, warnings, kept } = readRenderedChart(result.text, customLists)
  for (const problem of problems.slice(0, problemLimit)) report('ChartInvalid', `chart ${shown} ${problem}`)
  for (const warning of warnings.slice(0, problemLimit))
    report('ChartInvalid', `chart ${shown} ${warning}`, 'warning')
  const bytes = await releaseBytes(archive, [...kept, await readFile(valuesFile, 'utf8')])
  if (bytes > secretBytes)
    report(
      'ChartInvalid',
      `chart ${shown} is too large: helm keeps it with its rendered objects in one Secret, which would have ${bytes} bytes, and Kubernetes allows ${secretBytes}; leave files out of the chart, or divide it`,
    )
  for (const version of apiVersionsIn(objects)) apiVersions.add(version)
  return { objects, installed }
}
