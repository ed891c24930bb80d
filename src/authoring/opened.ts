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
import { Failure } from '../ctl/exit-codes.ts'
import { systemReason } from '../errors/system-reason.ts'
import type { CommandContext } from './command-context.ts'
import { createProgress } from './progress.ts'

/** An archive that was read. */
export interface OpenedArchive extends ReadDefinition {
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

function sizeOf(file: string): number {
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
