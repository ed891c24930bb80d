import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { definitionFile, parseDefinitionFile, type DefinitionHead } from '../format/definition-file.ts'
import type { Member } from '../../archive/extract.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import { refuse } from '../../archive/refusal.ts'

/** Where archives that were made before this format keep their profiles. */
export const existingProfiles = 'spc/app/profiles'

/**
 * Compares the unpacked files with the sums of definition.yaml.
 * @returns the content of definition.yaml; undefined for archives of the existing layout, which have no such file
 * @throws AppError if a file is missing, unlisted or different; the system's errors as they are
 */
export async function verifySums(
  folder: string,
  members: ReadonlyMap<string, Member>,
  limits: ArchiveLimits,
): Promise<DefinitionHead | undefined> {
  const own = members.get(definitionFile)
  if (own === undefined) {
    if ([...members.keys()].some((path) => path.startsWith(`${existingProfiles}/`))) return undefined
    throw refuse(
      'DefinitionMissing',
      undefined,
      `contains neither ${definitionFile} nor ${existingProfiles}; check that it is a definition`,
    )
  }
  const head = parseDefinitionFile(await readHead(folder, own, limits), limits)
  for (const [path, { sha256 }] of members) {
    if (path === definitionFile) continue
    const sum = head.sums.get(path)
    if (sum === undefined) throw refuse('MemberUnlisted', path, `is not in the sums of ${definitionFile}`)
    if (sum !== sha256)
      throw refuse(
        'SumDiffers',
        path,
        'is not the file that was packed: its SHA-256 differs; copy the archive again',
      )
  }
  for (const path of head.sums.keys())
    if (!members.has(path))
      throw refuse('MemberMissing', path, `is in the sums of ${definitionFile}, not in the archive`)
  return head
}

async function readHead(folder: string, { sizeBytes }: Member, limits: ArchiveLimits): Promise<string> {
  if (sizeBytes > limits.textBytes)
    throw refuse('MemberTooLarge', definitionFile, `has ${sizeBytes} bytes; ${limits.textBytes} are allowed`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(join(folder, definitionFile)))
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
      ? refuse('DefinitionUnreadable', definitionFile, 'cannot be read: it is not UTF-8', error)
      : error
  }
}
