import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { definitionErrors } from '../codes.ts'
import type { DiskRoom } from '../../archive/disk-room.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { replaceFile } from '../../system/files.ts'
import { extractDefinition, type ExtractedDefinition } from '../read/extract-definition.ts'
import { readDefinition } from '../read/read-definition.ts'
import { isReadWhole } from '../read/read-pack.ts'
import type { Definition, Pack } from '../definition.ts'
import { checkDefinition } from '../rules/check.ts'
import { createImageFinder } from '../rules/images.ts'
import { createPatterns, type Patterns } from '../rules/pattern.ts'
import type { ClusterProfileDetail } from '../schemas.ts'
import { detailsOf } from '../slots/details.ts'
import { logoText } from '../slots/logo.ts'
import { readGrowing } from './growing-file.ts'
import { refuseErrors } from './refuse-problems.ts'
import {
  detailsFile,
  profilesFile,
  type CountedProfiles,
  type Examined,
  type ExaminationOrder,
} from './protocol.ts'

/**
 * Reads an archive while it arrives, checks form and content, and writes what the daemon needs to the folder, synced to
 * the disk: `details.json` and `profiles.json`. All other files that it wrote there are removed.
 * @param lines what the daemon sends after its order
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
