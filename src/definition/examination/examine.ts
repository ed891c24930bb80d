import { AppError } from '../../errors/app-error.ts'
import type { ErrorKind } from '../../errors/define-errors.ts'
import type { Problem, Definition, Pack } from '../definition.ts'
import { readFile, open, rm } from 'node:fs/promises'
import { createPatterns, type Patterns } from '../rules/pattern.ts'
import { createVariableRules } from '../rules/variables.ts'
import {
  type Judgement,
  type JudgementOrder,
  type StoredProfiles,
  endLine,
  detailsFile,
  profilesFile,
  type CountedProfiles,
  type Examined,
  type ExaminationOrder,
} from './protocol.ts'
import { Readable } from 'node:stream'
import { generalErrors } from '../../errors/codes.ts'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { definitionErrors } from '../codes.ts'
import type { DiskRoom } from '../../archive/disk-room.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { replaceFile } from '../../system/files.ts'
import { extractDefinition, type ExtractedDefinition, readDefinition } from '../read/read-definition.ts'
import { isReadWhole } from '../read/read-pack.ts'
import { checkDefinition } from '../rules/check.ts'
import { createImageFinder } from '../rules/images.ts'
import type { ClusterProfileDetail } from '../schemas.ts'
import { detailsOf, logoText } from '../slots/details.ts'

// More than a person reads in one reply.
const problemLimit = 100

/** Refuses content that has errors; `details.problems` lists them. @throws AppError of this kind, if there are any */
export function refuseErrors(kind: ErrorKind, problems: readonly Problem[]): void {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const [first] = errors
  if (!first) return
  const more = errors.length > 1 ? `; ${errors.length - 1} more in details.problems` : ''
  throw new AppError(kind, `${first.place}: ${first.message}${more}`, {
    details: { count: errors.length, problems: errors.slice(0, problemLimit) },
  })
}

/** Judges values without a limit of steps, and counts the patterns, since an older version may not have counted them. */
export async function judge({ profiles: file, given }: JudgementOrder): Promise<Judgement> {
  const stored = JSON.parse(await readFile(file, 'utf8')) as StoredProfiles
  const patterns = createPatterns()
  const rules = createVariableRules('profiles' in stored ? stored.profiles : stored, patterns)
  return { variables: rules.validate(given), patterns: patterns.verdicts() }
}

// The decompressor takes this much at once.
const chunkBytes = 262_144

/**
 * The bytes of a file that another process still writes, up to the size which that process last reported.
 * @param lines numbers of bytes, then `end`; if the lines stop without `end`, the writer has given up
 * @param onChunk receives every byte once, in order
 */
function readGrowing(file: string, lines: AsyncIterable<string>, onChunk: (chunk: Buffer) => void): Readable {
  return Readable.from(grow(file, lines, onChunk), { objectMode: false, highWaterMark: chunkBytes })
}

async function* grow(
  file: string,
  lines: AsyncIterable<string>,
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  const handle = await open(file, 'r')
  try {
    let position = 0
    for await (const line of lines) {
      if (line === endLine) return
      for (const written = Number(line); position < written;) {
        const room = Buffer.allocUnsafeSlow(Math.min(chunkBytes, written - position))
        const { bytesRead } = await handle.read(room, 0, room.length, position)
        if (bytesRead === 0) throw new Error(`${file} is shorter than the reported ${written} bytes`)
        position += bytesRead
        const chunk = room.subarray(0, bytesRead)
        onChunk(chunk)
        yield chunk
      }
    }
    throw new AppError(generalErrors.BadRequest, 'the connection ended before the body did')
  } finally {
    await handle.close()
  }
}

/**
 * Reads an archive while it arrives, checks form and content, and writes the results for the daemon to the folder, synced to
 * the disk: `details.json` and `profiles.json`. All other files that it wrote there are removed.
 * @param lines from the daemon, after its order
 * @throws AppError why the archive is refused; the system's errors as they are
 */
export async function examine(
  { file, folder, limits, reserveBytes, isHashed }: ExaminationOrder,
  lines: AsyncIterable<string>,
): Promise<Examined> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  const source = readGrowing(file, lines, (chunk) => {
    sizeBytes += chunk.length
    if (isHashed) hash.update(chunk)
  })
  const content = join(folder, 'content')
  const room = createDiskRoom({ folder, reserveBytes })
  try {
    const extracted = await extractDefinition({ source, folder: content, limits, room, isKept: isReadWhole })
    const { definition, problems: ofForm } = await readDefinition(extracted, limits)
    const { onDocument, imagesOf } = createImageFinder()
    const patterns = createPatterns()
    const problems = [...ofForm, ...checkDefinition(definition, { onDocument, patterns })]
    refuseErrors(definitionErrors.DefinitionInvalid, problems)
    const details = detailsOf(definition, { images: imagesOf, logo: (pack) => readLogo(extracted, pack) })
    await writeResults({ folder, room }, definition, patterns, details)
    const { name, version } = definition
    return { name, version, sha256: isHashed ? hash.digest('hex') : '', sizeBytes, problems }
  } finally {
    await rm(content, { recursive: true, force: true })
  }
}

async function writeResults(
  { folder, room }: { readonly folder: string; readonly room: DiskRoom },
  { profiles }: Definition,
  patterns: Patterns,
  details: readonly ClusterProfileDetail[],
): Promise<void> {
  const stored: CountedProfiles = {
    profiles: profiles.map(({ place, uid, name, variables }) => ({ place, uid, name, variables })),
    patterns: patterns.verdicts(),
  }
  for (const [name, content] of [
    [profilesFile, stored],
    [detailsFile, details],
  ] as const) {
    const bytes = Buffer.from(JSON.stringify(content))
    await room.take(bytes.length)
    await replaceFile(join(folder, name), bytes, 0o600)
  }
}

function readLogo({ folder, members }: ExtractedDefinition, { logo = '' }: Pack): string {
  return members.get(logo)?.isKept === true ? logoText(readFileSync(join(folder, logo))) : ''
}
