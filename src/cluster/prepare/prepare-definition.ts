import { rm, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { DesiredPack } from '../desired/desired-state.ts'
import { preparedFiles } from '../desired/prepared.ts'
import { mergeImages, type NeededImage, type PackNeeds } from '../needs/needs.ts'
import { prepareCharts, type ChartEdges, chartsElsewhere, countCharts } from './charts.ts'
import { compareOrder, type ClusterPack } from './packs.ts'
import { renderManifests, templatesIn, type Rendered } from './manifests.ts'
import type { InstalledPack } from './installed.ts'
import { createPackReport, hashOf, createWorkspace } from './workspace.ts'
import { missingMark, type Resolved, resolveDefinition } from './resolve.ts'
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { DiskRoom } from '../../archive/disk-room.ts'
import { withDefaults, type ArchiveLimits } from '../../archive/limits.ts'
import { replacedDefinition } from '../../definition/codes.ts'
import type { Definition } from '../../definition/definition.ts'
import { extractDefinition, readDefinition } from '../../definition/read/read-definition.ts'
import { isReadWhole } from '../../definition/read/read-pack.ts'
import { createRunner } from '../../system/runner.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { lastKnownMinor } from '../../kubernetes/built-in-kinds.ts'
import type { PreflightCodeName } from '../desired/preflight-codes.ts'
import { createHelm } from './helm.ts'
import { judgeObjects } from './judge.ts'
import type { PrepareFinding, PrepareOrder } from './protocol.ts'

type InstallEdges = Pick<ChartEdges, 'workspace' | 'helm' | 'content' | 'elsewhere'>

interface InstalledPacks {
  /** In the order of their installation. */
  readonly packs: DesiredPack[]
  /** The needs of all packs of the content. */
  readonly needs: PackNeeds[]
  /** The objects of the packs, in the same order. */
  readonly installed: InstalledPack[]
}

/**
 * Renders the packs, in the order of their installation, since a chart may need the kinds that an earlier pack adds.
 */
async function installPacks(
  { packs, add }: Pick<Resolved, 'packs' | 'add'>,
  edges: InstallEdges,
): Promise<InstalledPacks> {
  const { workspace } = edges
  const shared = {
    ...edges,
    apiVersions: new Set<string>(),
    customLists: new Map(),
    releases: new Map<string, string>(),
  }
  const desired: DesiredPack[] = []
  const installed: InstalledPack[] = []
  let before: ClusterPack | undefined
  let order = -1
  const needs: PackNeeds[] = []
  const numbers = new Map(packs.map((each, index) => [each, String(index)]))
  for (const each of packs.toSorted(compareOrder)) {
    const { id, pack, settings } = each
    const report = createPackReport(add, id)
    for (const { code, severity, message } of settings.problems) report(code, `it ${message}`, severity)
    const place = join('packs', numbers.get(each) ?? '')
    const manifests = await renderManifests(each, place, { ...shared, report })
    const charts = await prepareCharts(each, place, { ...shared, report })
    await rm(join(workspace.folder, templatesIn(place)), { recursive: true, force: true })
    const images = mergeImages([...listedImages(each), ...manifests.images, ...charts.images]).map(markOpen)
    const ofPack = images.flatMap(({ image, guess, isOpen }) => (guess || isOpen ? [] : [image]))
    needs.push({
      pack: id,
      images,
      charts: chartsElsewhere(each),
      usesHelm: countCharts(each) > 0 || each.manifests.some(({ isTemplate }) => isTemplate),
    })
    const installs = manifests.desired.length + charts.desired.length + settings.namespaces.length > 0
    if (!installs && (pack.layer === 'os' || pack.layer === 'k8s')) continue
    if (!before || compareOrder(before, each) !== 0) order += 1
    before = each
    const { namespaces } = settings
    installed.push({
      id,
      order,
      namespaces,
      installations: [...charts.installations, ...manifests.installations],
    })
    desired.push({
      id,
      profileUid: each.profile.uid,
      name: pack.name,
      displayName: pack.displayName,
      version: pack.tag,
      layer: pack.layer,
      order,
      images: ofPack,
      digest: hashOf(JSON.stringify([namespaces, manifests.sums, charts.sums])),
      namespaces,
      manifests: manifests.desired,
      charts: charts.desired,
      ...(settings.drain ? { drain: settings.drain } : {}),
      ...(charts.desired.length > 0 ? { definitions: definitionsBefore(manifests, charts) } : {}),
    })
  }
  return { packs: desired, needs, installed }
}

/** An image whose name has a variable without a value. */
const markOpen = (image: NeededImage): NeededImage =>
  image.image.includes(missingMark)
    ? { ...image, image: image.image.replaceAll(missingMark, '…'), isOpen: true }
    : image

/** The image of the operating system that a pack of the layer `os` lists is for the platform's hosts; this host has its own. */
const listedImages = ({ pack, settings }: ClusterPack) =>
  pack.layer === 'os' ? [] : settings.images.map((image) => ({ image }))

/** The definitions that charts find in the cluster. helm refuses to install over foreign objects, so their own are left to them. */
const definitionsBefore = (manifests: Rendered<unknown>, charts: Rendered<unknown>) =>
  manifests.definitions.filter((name) => !charts.definitions.includes(name))

const contentFolder = 'content'
const helmFolder = 'helm'

/**
 * Prepares a cluster from the copy of a definition: unpacks it, resolves variables and macros, renders manifests and charts, and writes the
 * objects. Temporary files are removed at the end.
 * @throws AppError with the refusal of the archive, BadRequest if it is not the one that was examined, StorageFull
 */
export async function prepareDefinition(order: PrepareOrder, signal: AbortSignal): Promise<PrepareFinding> {
  const { folder, request, target, charts, limits: given } = order
  const limits = withDefaults(given)
  const room = createDiskRoom({ folder, reserveBytes: order.reserveBytes })
  const workspace = createWorkspace(folder, room)
  const content = join(folder, contentFolder)
  const helmPlace = join(folder, helmFolder)
  try {
    const definition = await unpack(order, limits, room)
    const resolved = resolveDefinition(definition, request)
    const needed = [...new Set(resolved.packs.flatMap(chartsElsewhere))]
    if (charts === undefined && needed.length > 0) return { needsCharts: needed }
    await mkdir(helmPlace, { mode: 0o700 })
    const helm = openHelm(order, resolved, helmPlace, signal)
    const edges = { workspace, helm, content: contentFolder, elsewhere: charts ?? {} }
    const { packs, needs, installed } = await installPacks(resolved, edges)
    judge(installed, resolved)
    const { uid, name, generation, node, settings } = request
    const { kubernetes } = resolved
    const desired = {
      uid,
      name,
      generation,
      folder: target,
      kubernetes,
      node,
      packs,
      settings,
      packTypes: Object.fromEntries(resolved.packs.map(({ id, pack }) => [id, pack.type])),
    }
    await workspace.write(preparedFiles.desired, JSON.stringify(desired))
    const { variables, derived, problems } = resolved
    return { prepared: { desired, variables, derived, needs, problems: problems() } }
  } finally {
    await rm(content, { recursive: true, force: true })
    await rm(helmPlace, { recursive: true, force: true })
  }
}

// With these, some installed objects are not known.
const leavesOut = new Set<PreflightCodeName>([
  ...(['ChartInvalid', 'ChartMissing', 'HelmMissing', 'ManifestInvalid', 'ReleaseInvalid'] as const),
  ...(['DefinitionProblem', 'NamespaceInvalid', 'ProgramUnusable', 'VariableInvalid'] as const),
])

function judge(packs: readonly InstalledPack[], { kubernetes, add, problems }: Resolved): void {
  // A pack of no version is a problem of its own.
  const minor = Number(kubernetes.version.split('.')[1] ?? lastKnownMinor)
  judgeObjects({
    packs,
    minor,
    add,
    hasMoreApis: /runtime-?config|feature-?gates/i.test(kubernetes.config),
    isWhole: !problems().some(({ code, severity }) => severity === 'error' && leavesOut.has(code)),
  })
}

function openHelm(
  { helm: program }: PrepareOrder,
  { kubernetes, hide }: Resolved,
  folder: string,
  signal: AbortSignal,
) {
  if (program === undefined) return undefined
  return createHelm({
    runner: createRunner(),
    program,
    folder,
    signal,
    hide,
    kubernetesVersion: kubernetes.version,
  })
}

/** Unpacks the texts and charts of the definition, and reads it. */
async function unpack(
  { folder, sha256 }: PrepareOrder,
  limits: ArchiveLimits,
  room: DiskRoom,
): Promise<Definition> {
  const hash = createHash('sha256')
  const file = createReadStream(join(folder, preparedFiles.definition), { highWaterMark: 262_144 })
  const source = Readable.from(hashed(file, hash), { objectMode: false })
  const extracted = await extractDefinition({
    source,
    folder: join(folder, contentFolder),
    limits,
    room,
    isKept: isReadWhole,
    isData: (path) => /(?:^|\/)packs\/[^/]+\/.*\.(?:tgz|tar\.gz)$/.test(path),
  })
  if (hash.digest('hex') !== sha256) throw replacedDefinition()
  return (await readDefinition(extracted, limits)).definition
}

async function* hashed(source: AsyncIterable<Buffer>, hash: Hash) {
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
}
