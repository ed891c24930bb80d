import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { DiskRoom } from '../../../archive/disk-room.ts'
import { withDefaults, type ArchiveLimits } from '../../../archive/limits.ts'
import { replacedDefinition } from '../../../definition/codes.ts'
import type { Definition } from '../../../definition/definition.ts'
import { extractDefinition } from '../../../definition/read/extract-definition.ts'
import { readDefinition } from '../../../definition/read/read-definition.ts'
import { isReadWhole } from '../../../definition/read/read-pack.ts'
import { createRunner } from '../../../system/runner.ts'
import { createDiskRoom } from '../../../upload/disk-room.ts'
import { lastKnownMinor } from '../../../kubernetes/built-in-kinds.ts'
import type { PreflightCodeName } from '../../preflight/codes.ts'
import { preparedFiles } from '../prepared.ts'
import { chartsElsewhere } from './charts.ts'
import { createHelm } from './helm.ts'
import type { InstalledPack } from './installed-packs.ts'
import { judgeObjects } from './judge-objects.ts'
import { installPacks } from './install-packs.ts'
import type { PrepareFinding, PrepareOrder } from './protocol.ts'
import { resolveDefinition, type Resolved } from './resolve.ts'
import { createWorkspace } from './workspace.ts'

const contentFolder = 'content'
const helmFolder = 'helm'

/**
 * Prepares a cluster from the copy of a definition: unpacks it, resolves variables and macros, renders manifests and charts, and
 * writes what is installed. What it writes meanwhile is removed at the end.
 * @throws AppError why the archive is refused, BadRequest if it is not the one that was examined, StorageFull
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
    const { packs, images, installed } = await installPacks(resolved, edges)
    judge(installed, resolved)
    const { uid, name, generation, node, settings } = request
    const { kubernetes } = resolved
    const wanted = {
      ...{ uid, name, generation, folder: target, kubernetes, node, packs, settings },
      packTypes: Object.fromEntries(resolved.packs.map(({ id, pack }) => [id, pack.type])),
    }
    await workspace.write(preparedFiles.wanted, JSON.stringify(wanted))
    const { variables, derived, problems } = resolved
    return { prepared: { wanted, variables, derived, images, problems: problems() } }
  } finally {
    await rm(content, { recursive: true, force: true })
    await rm(helmPlace, { recursive: true, force: true })
  }
}

// With these, something of what is installed is not known.
const leavesOut = new Set<PreflightCodeName>([
  ...(['ChartInvalid', 'ChartMissing', 'HelmMissing', 'ManifestInvalid', 'ReleaseInvalid'] as const),
  ...(['DefinitionProblem', 'NamespaceInvalid', 'ProgramUnusable', 'VariableInvalid'] as const),
])

function judge(packs: readonly InstalledPack[], { kubernetes, add, problems }: Resolved): void {
  // A pack of no version is a problem of its own.
  const minor = Number(kubernetes.version.split('.')[1] ?? lastKnownMinor)
  judgeObjects({
    ...{ packs, minor, add },
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
    ...{ runner: createRunner(), program, folder, signal, hide },
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
    ...{ source, folder: join(folder, contentFolder), limits, room },
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
