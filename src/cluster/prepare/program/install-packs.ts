import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { WantedPack } from '../../wanted.ts'
import type { PackImages } from '../prepared.ts'
import { prepareCharts, type ChartEdges } from './charts.ts'
import { compareOrder, type ClusterPack } from './cluster-packs.ts'
import { renderManifests, templatesIn, type Rendered } from './manifests.ts'
import type { InstalledPack } from './installed-packs.ts'
import { createPackReport } from './pack-report.ts'
import { missingMark, type Resolved } from './resolve.ts'
import { hashOf } from './workspace.ts'

export type InstallEdges = Pick<ChartEdges, 'workspace' | 'helm' | 'content' | 'elsewhere'>

export interface InstalledPacks {
  /** In the order of their installation. */
  readonly packs: WantedPack[]
  /** The images of all packs that containers of the cluster use. */
  readonly images: PackImages[]
  /** The objects of the packs, in the same order. */
  readonly installed: InstalledPack[]
}

/**
 * Renders what the packs install, in the order of their installation, since a chart may need the kinds that an earlier pack adds.
 */
export async function installPacks(
  { packs, add }: Pick<Resolved, 'packs' | 'add'>,
  edges: InstallEdges,
): Promise<InstalledPacks> {
  const { workspace } = edges
  const shared = { ...edges, apiVersions: new Set<string>(), releases: new Map<string, string>() }
  const wanted: WantedPack[] = []
  const installed: InstalledPack[] = []
  let before: ClusterPack | undefined
  let order = -1
  const images: PackImages[] = []
  const numbers = new Map(packs.map((each, index) => [each, String(index)]))
  for (const each of packs.toSorted(compareOrder)) {
    const { id, pack, settings } = each
    const report = createPackReport(add, id)
    for (const { code, severity, message } of settings.problems) report(code, `it ${message}`, severity)
    const place = join('packs', numbers.get(each) ?? '')
    const manifests = await renderManifests(each, place, { ...shared, report })
    const charts = await prepareCharts(each, place, { ...shared, report })
    await rm(join(workspace.folder, templatesIn(place)), { recursive: true, force: true })
    const named = new Set([...listedImages(each), ...manifests.images, ...charts.images])
    const ofPack = [...named].filter((image) => !image.includes(missingMark)).sort()
    images.push({ pack: id, images: ofPack })
    const installs = manifests.wanted.length + charts.wanted.length + settings.namespaces.length > 0
    if (!installs && (pack.layer === 'os' || pack.layer === 'k8s')) continue
    if (!before || compareOrder(before, each) !== 0) order += 1
    before = each
    const { namespaces } = settings
    installed.push({
      ...{ id, order, namespaces },
      installations: [...charts.installations, ...manifests.installations],
    })
    wanted.push({
      ...{ id, profileUid: each.profile.uid, name: pack.name, displayName: pack.displayName },
      ...{ version: pack.tag, layer: pack.layer, order, images: ofPack },
      digest: hashOf(JSON.stringify([namespaces, manifests.sums, charts.sums])),
      ...{ namespaces, manifests: manifests.wanted, charts: charts.wanted },
      ...(settings.drain ? { drain: settings.drain } : {}),
      ...(charts.wanted.length > 0 ? { definitions: definitionsBefore(manifests, charts) } : {}),
    })
  }
  return { packs: wanted, images, installed }
}

/** The image of the operating system that a pack of the layer `os` lists is for the platform's hosts; this host has its own. */
const listedImages = ({ pack, settings }: ClusterPack) => (pack.layer === 'os' ? [] : settings.images)

/** The definitions that charts find in the cluster. helm refuses to install what it did not make, so their own are left to them. */
const definitionsBefore = (manifests: Rendered<unknown>, charts: Rendered<unknown>) =>
  manifests.definitions.filter((name) => !charts.definitions.includes(name))
