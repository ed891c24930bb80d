import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { decompress } from '../archive/compression.ts'
import { bundleArchiveLimits } from '../archive/limits.ts'
import { readTar } from '../archive/tar-reader.ts'
import { sensitiveValues } from '../cluster/desired/configuration.ts'
import { preparedFiles } from '../cluster/desired/prepared.ts'
import { kubernetesPacks } from '../cluster/desired/version.ts'
import { kubernetesImages } from '../cluster/needs/kubernetes-images.ts'
import { listNeeds, shownNeed, type Need } from '../cluster/needs/needs.ts'
import { prepareDefinition } from '../cluster/prepare/prepare-definition.ts'
import type { PreparedContent } from '../cluster/prepare/protocol.ts'
import type { ContentNeed } from '../cluster/schemas.ts'
import type { Entry } from '../content/format/entry.ts'
import { formatImageName, parseImageName } from '../content/format/image-name.ts'
import { Failure, type ExitName } from '../ctl/exit-codes.ts'
import { oneLine, plural, renderFacts, renderTable } from '../ctl/layout.ts'
import { missingFact, needColumns } from '../ctl/needs.ts'
import { createHideOf } from '../definition/slots/secrets.ts'
import type { Problem } from '../definition/definition.ts'
import { AppError } from '../errors/app-error.ts'
import { findInPath } from '../system/attached.ts'
import { renderProblems, type CommandContext } from './context.ts'
import { describeBundle } from './content/inspect.ts'
import { unreadable } from './content/part.ts'
import { sizeOf } from './opened.ts'

/** The options of `edgehostctl definition needs`. */
export interface NeedsRequest {
  /** A definition, or a content bundle with one. */
  readonly file: string
  /** Bundles in which the content is looked for. */
  readonly bundles: readonly string[]
  /** The kind of which only the names are listed, a line each. */
  readonly list: string | undefined
}

/** `edgehostctl definition needs`. */
export async function needs(
  context: CommandContext,
  { file, bundles: given, list }: NeedsRequest,
): Promise<ExitName> {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostctl-needs-'))
  context.removeOnSignal(folder)
  try {
    const isBundle = await beginsAsBundle(file)
    const bundles = [...new Set([...(isBundle ? [file] : []), ...given])]
    const entries: Entry[] = []
    let definition = file
    for (const bundle of bundles) {
      const described = await describeBundle(context, bundle)
      entries.push(...described.entries)
      if (!isBundle || bundle !== file) continue
      if (!described.definition)
        throw new Failure(
          'failed',
          `${file} is a content bundle without a definition; give the definition itself`,
        )
      definition = join(folder, 'definition')
      await takeBlob(file, described.definition.digest, definition)
    }
    const helm = findInPath('helm', process.env)
    const prepared = await prepare(definition, helm, folder).catch((error: unknown) => {
      throw error instanceof AppError
        ? new Failure('failed', `${file}: ${error.message}`, { cause: error })
        : error
    })
    const all = listOf(prepared).map((need) =>
      shownNeed(need, bundles.length === 0 ? {} : find(need, entries)),
    )
    const hide = createHideOf(sensitiveValues(prepared))
    const shown = all.map((need) => ({ ...need, name: hide(need.name) }))
    const problems = problemsOf(prepared)
    if (list === undefined) await showAll(context, { file, bundles, needs: shown, problems })
    else await showNames(context, list, shown)
    noteLimits(context, prepared, helm)
    if (problems.length === 0) return 'ok'
    throw new Failure(
      'failed',
      `the list may lack content: ${file} has ${plural(problems.length, 'error')}; see: edgehostctl definition validate`,
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether an archive begins with the members of a content bundle. */
async function beginsAsBundle(file: string): Promise<boolean> {
  // Refuses anything but a regular file, which would be waited for.
  sizeOf(file)
  try {
    const bytes = decompress(createReadStream(file), bundleArchiveLimits)
    for await (const { name } of readTar(bytes, bundleArchiveLimits))
      return /^(?:\.\/)?(?:oci-layout|index\.json|blobs\/?)/.test(name)
    return false
  } catch (error) {
    // What it is otherwise, the reader of definitions says.
    if (error instanceof AppError) return false
    throw unreadable(file, error)
  }
}

/** Writes a blob of a bundle to a file. */
async function takeBlob(bundle: string, digest: string, to: string): Promise<void> {
  const path = `blobs/${digest.replace(':', '/')}`
  const bytes = decompress(createReadStream(bundle), bundleArchiveLimits)
  for await (const { name, content } of readTar(bytes, bundleArchiveLimits))
    if (name.replace(/^\.\//, '') === path) {
      await pipeline(Readable.from(content, { objectMode: false }), createWriteStream(to, { mode: 0o600 }))
      return
    }
  throw new Failure('failed', `${bundle} has no ${path}; copy it again`)
}

// A host of documentation, RFC 5737: images follow from the definition alone.
const address = '192.0.2.1'

/** Prepares a definition as a host does, with the defaults of its variables. */
async function prepare(file: string, helm: string | undefined, temporary: string): Promise<PreparedContent> {
  const folder = join(temporary, 'prepared')
  mkdirSync(folder, { mode: 0o700 })
  const copy = join(folder, preparedFiles.definition)
  await copyFile(file, copy).catch((error: unknown) => {
    throw unreadable(file, error)
  })
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(copy) as AsyncIterable<Buffer>) hash.update(chunk)
  const finding = await prepareDefinition(
    {
      folder,
      target: folder,
      sha256: hash.digest('hex'),
      helm,
      charts: {},
      limits: {},
      reserveBytes: 0,
      request: {
        variables: [],
        uid: 'uid',
        name: 'cluster',
        generation: 1,
        node: {
          name: 'node',
          address,
          endpoint: address,
          poolName: 'control-plane-pool',
          labels: {},
          taints: [],
          runsWorkloads: true,
        },
        settings: { ntpServers: [], sshKeys: [] },
      },
    },
    new AbortController().signal,
  )
  if ('prepared' in finding) return finding.prepared
  throw new Error('the preparation asks for charts that it was given')
}

function listOf({ needs: packs, desired: { kubernetes } }: PreparedContent): Need[] {
  const isKnown = kubernetesPacks.includes(kubernetes.pack) && kubernetes.version !== ''
  return listNeeds({
    packs,
    kubernetes: isKnown ? { version: kubernetes.version, images: kubernetesImages(kubernetes) } : undefined,
  })
}

/** A needed entry of a bundle. */
function find(
  { kind, name, version }: Need,
  entries: readonly Entry[],
): Pick<ContentNeed, 'isThere' | 'sizeBytes'> {
  const image = kind === 'image' ? parseImageName(name) : undefined
  const isIt = (entry: Entry): boolean => {
    if (entry.kind !== kind) return false
    if (!image)
      return (
        entry.title === name &&
        (version === undefined || [version, `v${version}`].includes(entry.version ?? ''))
      )
    if ('problem' in image) return false
    return image.digest === undefined
      ? entry.name === image.name && entry.tag === image.tag
      : entry.digest === image.digest
  }
  const found = entries.find(isIt)
  if (!found) return { isThere: false }
  const { platforms, sizeBytes } = found
  return { isThere: platforms.length === 0 || platforms.some(({ isCarried }) => isCarried), sizeBytes }
}

// With these, the images of a part of the definition are not known.
const leavesOut = new Set(['ChartInvalid', 'DefinitionProblem', 'ManifestInvalid', 'ReleaseInvalid'])

/** Errors that keep parts of the definition from being read. */
const problemsOf = ({ problems }: PreparedContent): Problem[] =>
  problems
    .filter(({ code, severity }) => severity === 'error' && leavesOut.has(code))
    .map(({ code, severity, message, pack = '' }) => ({ code, severity, message, place: pack }))

interface Shown {
  readonly file: string
  readonly bundles: readonly string[]
  readonly needs: readonly ContentNeed[]
  readonly problems: readonly Problem[]
}

async function showAll({ output }: CommandContext, shown: Shown): Promise<void> {
  const { file, bundles, needs: all, problems } = shown
  await output.show(shown, (paper) =>
    [
      renderFacts(
        [
          { label: 'File', lines: [file] },
          { label: 'Needs', lines: [countKinds(all)] },
          ...(bundles.length === 0 ? [] : [missingFact(all, 'in the given bundles')]),
        ],
        paper,
      ),
      renderTable(all, needColumns(bundles.length === 0 ? undefined : 'THERE'), paper.columns),
      ...(problems.length === 0 ? [] : [renderProblems(problems, paper)]),
    ].join('\n'),
  )
}

const countKinds = (all: readonly ContentNeed[]): string =>
  (['image', 'chart', 'program'] as const)
    .map((kind) => plural(all.filter((need) => need.kind === kind).length, kind))
    .join(', ')

/**
 * Names for other programs, a line each: images as skopeo takes them, whole and with a digest instead of a tag where they have both; charts as
 * `name:version`; programs as the beginning of `content build --programs`.
 */
async function showNames(context: CommandContext, kind: string, all: readonly ContentNeed[]): Promise<void> {
  const needed = all.filter((need) => need.kind === kind)
  const names = [...new Set(needed.flatMap((need) => nameFor(need) ?? []))]
  await context.output.show(names, () => names.map((name) => `${oneLine(name)}\n`).join(''))
  for (const need of needed)
    if (nameFor(need) === undefined)
      context.output.note(`left out: ${oneLine(need.name)}: ${need.reason ?? 'it is no name of an image'}`)
}

/** Undefined for an image that cannot be got by its name. */
function nameFor({ kind, name, version = '', reason = '' }: ContentNeed): string | undefined {
  if (kind === 'chart') return `${name}:${version}`
  if (kind === 'program') return version === '' ? name : `${name}=${version}`
  const parsed = parseImageName(name)
  // Without a tag it would be the newest one, which nothing has asked for.
  if ('problem' in parsed || !/[:@][^/]*$/.test(name) || reason.endsWith('windows')) return undefined
  const { name: repository, tag, digest } = parsed
  return formatImageName(
    digest === undefined
      ? { name: repository, ...(tag === undefined ? {} : { tag }) }
      : { name: repository, digest },
  )
}

/** Says what could not be looked into. */
function noteLimits(
  { output }: CommandContext,
  { problems, desired }: PreparedContent,
  helm: string | undefined,
): void {
  const has = (code: string) => problems.some((problem) => problem.code === code)
  if (has('HelmMissing'))
    output.note(
      'There is no helm in PATH, so charts and templates are not rendered: images that only they name are guessed from values.',
    )
  if (has('ProgramUnusable'))
    output.note(`${helm ?? 'helm'} cannot be run: images of charts are guessed from values.`)
  if (has('ChartMissing'))
    output.note(
      'Charts that are not in the definition are not rendered: their images are guessed from values.',
    )
  const { pack } = desired.kubernetes
  if (pack === '')
    output.note('The definition has no Kubernetes pack: the content of Kubernetes is not in the list.')
  if (pack !== '' && !kubernetesPacks.includes(pack))
    output.note(
      `The content of Kubernetes of the pack ${oneLine(pack)} is not known; ${kubernetesPacks.join(', ')} is.`,
    )
}
