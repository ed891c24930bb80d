import { AppError } from '../../errors/app-error.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { plural, oneLine, renderFacts } from '../../ctl/layout.ts'
import { type CommandContext, renderProblems, sortProblems, createProgress, megabytes } from '../context.ts'
import { readChartPart } from './chart-part.ts'
import { readDefinitionPart, readFilePart } from './file-part.ts'
import { unreadable, splitNamed, type Part } from './part.ts'
import { readImageArchive } from './image-archive.ts'
import { openLayoutFolder, readLayoutPart } from './layout.ts'
import { readProgramsPart, splitPrograms } from './programs-part.ts'
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { estimateShrinking } from './shrinking.ts'
import { planBundle, identityOf, isBundleName, unwritable, writeBundle } from './write.ts'

/** The options of `edgehostctl content build`. */
interface ContentRequest {
  readonly layouts: readonly string[]
  readonly archives: readonly string[]
  readonly charts: readonly string[]
  /** `NAME=VERSION:DIR` each. */
  readonly programs: readonly string[]
  /** `NAME=FILE` each. */
  readonly files: readonly string[]
  readonly definitions: readonly string[]
  readonly file: string | undefined
}

/** The files that the options name, for the check that the output is none of them. */
function inputFiles({
  archives,
  charts,
  files,
  definitions,
}: ContentRequest): { place: string; path: string }[] {
  const fileOf = (place: string, value: string) => ({
    place,
    path: splitNamed(place, value, 'NAME=FILE').path,
  })
  return [
    ...archives.map((path) => ({ place: `--image-archive ${path}`, path })),
    ...charts.map((path) => ({ place: `--chart ${path}`, path })),
    ...files.map((value) => fileOf(`--file ${value}`, value)),
    ...definitions.map((path) => ({ place: `--definition ${path}`, path })),
  ]
}

/** The content that the options name. */
interface Collected {
  readonly parts: readonly Part[]
  /** Names of images whose manifest is made here, so that no registry has their digest. */
  readonly converted: readonly string[]
}

/**
 * Reads the content that the options name.
 * @param makeFolder makes a folder for unpacked files, which stays until the bundle is complete
 * @throws Failure that names the option and the reason
 */
async function collectParts(
  context: CommandContext,
  request: ContentRequest,
  makeFolder: () => Promise<string>,
): Promise<Collected> {
  const progress = createProgress('reading', context.errors)
  let done = 0
  const onRead = (bytes: number) => {
    done += bytes
    progress.report(done, 0)
  }
  const parts: Part[] = []
  const converted: string[] = []
  try {
    for (const folder of request.layouts) {
      const place = `--oci-layout ${folder}`
      parts.push(await named(place, () => readLayoutPart(openLayoutFolder(folder, place), place)))
    }
    for (const file of request.archives) {
      const place = `--image-archive ${file}`
      const options = { file, place, makeFolder, onRead: progress.report }
      const part = await named(place, () => readImageArchive(options))
      parts.push(part)
      converted.push(...part.converted)
    }
    for (const file of request.charts) {
      const place = `--chart ${file}`
      parts.push(await named(place, () => readChartPart(file, place, onRead)))
    }
    for (const value of request.programs) parts.push(await readProgramsPart(value, onRead))
    for (const value of request.files) parts.push(await readFilePart(value, onRead))
  } finally {
    progress.clear()
  }
  for (const file of request.definitions) parts.push(await readDefinition(context, file))
  return { parts, converted }
}

async function readDefinition(context: CommandContext, file: string): Promise<Part> {
  const { part, problems } = await readDefinitionPart(context, file)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return part
  const sorted = sortProblems(problems)
  await context.output.show({ file, problems: sorted }, (paper) => renderProblems(sorted, paper))
  throw new Failure('failed', `--definition ${file} has ${plural(errors.length, 'error')}; nothing was built`)
}

/** Puts the option before a refusal of the content. */
async function named<Value>(place: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof AppError
      ? new Failure('failed', `${place}: ${error.message}`, { cause: error })
      : unreadable(place, error)
  }
}

/** `edgehostctl content build`. */
export async function buildContent(context: CommandContext, request: ContentRequest): Promise<ExitName> {
  checkRequest(request)
  const spool = createSpool(request.file ?? 'bundle', context.removeOnSignal)
  try {
    return await build(context, request, spool.makeFolder)
  } finally {
    await spool.remove()
  }
}

/** Folders beside the bundle, where the disk has to have room anyway, unlike the one for temporary files. */
function createSpool(file: string, removeOnSignal: CommandContext['removeOnSignal']) {
  const folders: string[] = []
  return {
    async makeFolder() {
      const folder = join(dirname(file), `.edgehost-${randomBytes(8).toString('hex')}.part`)
      removeOnSignal(folder)
      folders.push(folder)
      await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
        throw unwritable(file, error)
      })
      return folder
    },
    async remove() {
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    },
  }
}

async function build(
  context: CommandContext,
  request: ContentRequest,
  makeFolder: () => Promise<string>,
): Promise<ExitName> {
  const { parts, converted } = await collectParts(context, request, makeFolder)
  const plan = planBundle(parts)
  const { file, advice } =
    request.file === undefined
      ? nameBundle(identityOf(plan), await estimateShrinking(plan.blobs))
      : { file: request.file }
  requireOtherFile(file, request)
  const progress = createProgress('packing', context.errors)
  const sizeBytes = await writeBundle({
    plan,
    file,
    onBegin: context.removeOnSignal,
    onProgress: (done) => progress.report(done, plan.contentBytes),
  }).finally(progress.clear)
  const built = {
    file,
    indexDigest: identityOf(plan),
    entries: plan.entries.length,
    blobCount: plan.blobs.length,
    contentBytes: plan.contentBytes,
    sizeBytes,
    ...(converted.length === 0 ? {} : { withoutRegistryDigest: converted }),
  }
  await context.output.show(built, (paper) =>
    renderFacts(
      [
        { label: 'File', lines: [file] },
        { label: 'Identity', lines: [built.indexDigest] },
        {
          label: 'Holds',
          lines: [
            `${plural(built.entries, 'entry', 'entries')}, ${plural(built.blobCount, 'blob')} of ${megabytes(built.contentBytes)}`,
          ],
        },
        { label: 'Size', lines: [megabytes(sizeBytes)] },
      ],
      paper,
    ),
  )
  for (const name of converted)
    context.output.note(
      `${oneLine(name)} has no registry digest: docker save left its manifest out, so this one is new. Where the digest counts, save the image with skopeo copy or docker save of version 25 and later.`,
    )
  if (advice !== undefined) context.output.note(advice)
  if (context.output.format === 'table')
    context.output.note(`Check its content: edgehostctl content inspect ${shellWord(file)}`)
  return 'ok'
}

const see = 'See: edgehostctl help content build'

// A browser has no zstd: it can send a .tar blob by blob, and continue.
const mostExtra = 0.1

/** The name of a bundle for which none is given, and what to do for the other form. Pure. */
function nameBundle(identity: string, shrinking: number): { file: string; advice: string } {
  const name = `bundle-${identity.replace(/^sha256:/, '').slice(0, 12)}`
  const percent = (share: number) => `${Math.max(0, Math.round(share * 100))} %`
  return 1 / shrinking - 1 < mostExtra
    ? {
        file: `${name}.tar`,
        advice: `Not compressed: that would save about ${percent(1 - shrinking)}. For it: --output ${name}.tar.zst`,
      }
    : {
        file: `${name}.tar.zst`,
        advice: `Compressed, which saves about ${percent(1 - shrinking)}. For an upload by a browser that can be continued: --output ${name}.tar`,
      }
}

function checkRequest({ file, definitions, ...lists }: ContentRequest): void {
  if (file !== undefined && !isBundleName(file))
    throw new Failure(
      'usage',
      `--output ${file} is no name of a bundle; it ends in .tar, .tar.gz, .tgz or .tar.zst\n${see}`,
    )
  if (definitions.length > 1)
    throw new Failure('usage', `content build takes one --definition; a bundle has at most one\n${see}`)
  if ([definitions, ...Object.values(lists)].every((list) => list.length === 0))
    throw new Failure('usage', `content build needs something to pack, for example --oci-layout DIR\n${see}`)
  if (file !== undefined) requireOtherFile(file, { file, definitions, ...lists })
}

/** @throws Failure where the bundle would replace, or be, what it is made of */
function requireOtherFile(file: string, request: ContentRequest): void {
  for (const { place, path } of inputFiles(request))
    if (isSame(path, file))
      throw new Failure('usage', `--output ${file} is also the file of ${place}; name another file\n${see}`)
  const folders = request.programs.map(
    (value) => [`--programs ${value}`, splitPrograms(value).folder] as const,
  )
  for (const [place, folder] of folders)
    if (isInside(file, folder))
      throw new Failure('usage', `--output ${file} is in the folder of ${place}; write it elsewhere\n${see}`)
}

/** Whether a file is, or would be, in a folder or below it. */
function isInside(file: string, folder: string): boolean {
  for (let parent = dirname(resolve(file)); ; parent = dirname(parent)) {
    if (isSame(parent, folder)) return true
    if (parent === dirname(parent)) return false
  }
}

/** Whether two paths are one file, also through links. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}
