import { AppError } from '../../errors/app-error.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { plural } from '../../ctl/text.ts'
import type { CommandContext } from '../command-context.ts'
import { renderProblems, sortProblems } from '../problems.ts'
import { createProgress } from '../progress.ts'
import { readChartPart } from './chart-part.ts'
import { readDefinitionPart } from './definition-part.ts'
import { unreadable } from './file-blob.ts'
import { readFilePart } from './file-part.ts'
import { readImageArchive } from './image-archive.ts'
import { openLayoutFolder } from './layout-folder.ts'
import { readLayoutPart } from './layout-part.ts'
import { splitNamed } from './named-value.ts'
import type { Part } from './part.ts'
import { readProgramsPart } from './programs-part.ts'

/** The options of `edgehostctl content build`. */
export interface ContentRequest {
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
export function inputFiles({
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

/** What the options name. */
export interface Collected {
  readonly parts: readonly Part[]
  /** Names of images whose manifest is made here, so that no registry has their digest. */
  readonly converted: readonly string[]
}

/**
 * Reads what all options name.
 * @param makeFolder makes a folder for what is unpacked, which stays until the bundle is complete
 * @throws Failure that names the option and the reason
 */
export async function collectParts(
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
