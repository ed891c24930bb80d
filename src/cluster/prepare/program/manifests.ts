import { join } from 'node:path'
import { jsonForYaml } from '../../../base/json.ts'
import type { WantedManifest } from '../../wanted.ts'
import type { ClusterPack, ManifestText } from './cluster-packs.ts'
import type { Helm } from './helm.ts'
import { installedObject, type InstalledObject } from './installed-objects.ts'
import type { Installation } from './installed-packs.ts'
import { apiVersionsIn, definitionsIn, imagesIn, readObjects } from './objects.ts'
import type { PackReport } from './pack-report.ts'
import { mappingAt } from './plain.ts'
import { pathPartOf, type Workspace } from './workspace.ts'

/** What is installed of a pack: manifests or charts. */
export interface Rendered<Item> {
  readonly wanted: readonly Item[]
  readonly images: readonly string[]
  /** Names of its custom resource definitions. */
  readonly definitions: readonly string[]
  /** What of it the digest of the pack covers. */
  readonly sums: readonly string[]
  readonly installations: readonly Installation[]
}

export interface RenderEdges {
  readonly workspace: Workspace
  /** Undefined if this host has none. */
  readonly helm: Helm | undefined
  /** Versions of the API that the packs before and this one add; added to. */
  readonly apiVersions: Set<string>
  readonly report: PackReport
}

/** The folder for what helm renders manifests from; it is of no use afterwards. @param place folder of the pack */
export const templatesIn = (place: string): string => join(place, 'templates')

/** Renders the manifests of a pack, and judges what is to be applied. @param place folder of the pack in the workspace */
export async function renderManifests(
  clusterPack: ClusterPack,
  place: string,
  edges: RenderEdges,
): Promise<Rendered<WantedManifest>> {
  const { workspace, report, apiVersions } = edges
  const wanted: WantedManifest[] = []
  const images = new Set<string>()
  const definitions: string[] = []
  const sums: string[] = []
  const installed: InstalledObject[] = []
  const { namespace } = clusterPack.settings
  for (const [index, manifest] of clusterPack.manifests.entries()) {
    const text = manifest.isTemplate
      ? await renderTemplate(clusterPack, manifest, join(templatesIn(place), String(index)), edges)
      : manifest.content
    if (text === undefined) continue
    const { objects, problems } = readObjects(text)
    for (const problem of problems) report('ManifestInvalid', `manifest ${manifest.name} ${problem}`)
    if (objects.length === 0) continue
    for (const image of imagesIn(objects)) images.add(image)
    for (const version of apiVersionsIn(objects)) apiVersions.add(version)
    definitions.push(...definitionsIn(objects))
    installed.push(...objects.flatMap((object) => installedObject(object, 'manifest') ?? []))
    const file = join(place, 'manifests', `${index}-${pathPartOf(manifest.name)}.jsonl`)
    const sum = await workspace.write(file, objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
    sums.push(`${manifest.name}\0${namespace}\0${sum}`)
    wanted.push({ name: manifest.name, namespace, file, sum })
  }
  const installations = [{ namespace, release: '', objects: installed }]
  return { wanted, images: [...images], definitions, sums, installations }
}

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
