import { createHash, type Hash } from 'node:crypto'
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import {
  extractDefinition,
  type ExtractedDefinition,
  readDefinition,
  type ReadDefinition,
} from '../definition/read/read-definition.ts'
import { isReadWhole } from '../definition/read/read-pack.ts'
import { Failure, type ExitName } from '../ctl/exit-codes.ts'
import { systemReason } from '../errors/system-reason.ts'
import { type CommandContext, createProgress, renderProblems, sortProblems } from './context.ts'
import { checkDefinition } from '../definition/rules/check.ts'
import type { Problem } from '../definition/definition.ts'
import { plural } from '../ctl/layout.ts'
import { AppError } from '../errors/app-error.ts'

/** An archive that was read. */
interface OpenedArchive extends ReadDefinition {
  readonly extracted: ExtractedDefinition
  readonly sizeBytes: number
  /** Of the archive, hex. */
  readonly sha256: string
}

/**
 * Reads an archive. It is unpacked into a temporary folder (in TMPDIR), which is removed afterwards.
 * @throws AppError if the archive is refused
 */
export async function openArchive(context: CommandContext, file: string): Promise<OpenedArchive> {
  const sizeBytes = sizeOf(file)
  const progress = createProgress('reading', context.errors)
  const temporary = mkdtempSync(join(tmpdir(), 'edgehostctl-definition-'))
  context.removeOnSignal(temporary)
  try {
    const hash = createHash('sha256')
    const chunks = createReadStream(file, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>
    const extracted = await extractDefinition({
      source: Readable.from(hashed(chunks, hash), { objectMode: false }),
      folder: join(temporary, 'staging'),
      isKept: isReadWhole,
      onFlow: ({ compressedBytes }) => progress.report(compressedBytes, sizeBytes),
    })
    return { ...(await readDefinition(extracted)), extracted, sizeBytes, sha256: hash.digest('hex') }
  } finally {
    progress.clear()
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** Bytes of a regular file: one that another program fills (a FIFO) would be waited for. @throws Failure */
export function sizeOf(file: string): number {
  try {
    const stat = statSync(file)
    if (!stat.isFile()) throw new Failure('failed', `${file} is not a regular file`)
    return stat.size
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('failed', `${file} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, {
      cause: error,
    })
  }
}

async function* hashed(source: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
}

/** `edgehostctl definition validate FILE`: shows all problems of the archive, its form and its content. */
export async function validate(context: CommandContext, file: string): Promise<ExitName> {
  const problems = sortProblems(await findProblems(context, file))
  const errors = problems.filter(({ severity }) => severity === 'error').length
  await context.output.show({ file, isValid: errors === 0, problems }, (paper) =>
    renderProblems(problems, paper),
  )
  const warnings = problems.length - errors
  context.output.note(
    errors === 0
      ? `${file} can be used${warnings > 0 ? `; ${plural(warnings, 'warning')}` : ''}.`
      : `${file} cannot be used: ${plural(errors, 'error')}, ${plural(warnings, 'warning')}.`,
  )
  return errors === 0 ? 'ok' : 'failed'
}

/** All problems of a definition archive. */
export async function findProblems(context: CommandContext, file: string): Promise<Problem[]> {
  try {
    const { definition, problems } = await openArchive(context, file)
    return [...problems, ...checkDefinition(definition)]
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const { member } = error.details ?? {}
    const place = typeof member === 'string' ? member : file
    return [{ code: error.code, severity: 'error', place, message: error.message }]
  }
}
