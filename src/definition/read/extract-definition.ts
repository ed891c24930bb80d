import { rm } from 'node:fs/promises'
import { extractArchive, type Extracted, type ExtractOptions } from '../../archive/extract.ts'
import { withDefaults } from '../../archive/limits.ts'
import { definitionFile, type DefinitionHead } from '../format/definition-file.ts'
import { verifySums } from './verify-sums.ts'

/** A definition that lies unpacked in a folder, every sum of it right. */
export interface ExtractedDefinition extends Extracted {
  /** What definition.yaml says; nothing in archives of the existing layout, which have none. */
  readonly head: DefinitionHead | undefined
}

/**
 * Unpacks a definition archive and holds every member against its sum. After a failure the folder is gone.
 * @throws as `extractArchive` and `verifySums`
 */
export async function extractDefinition(
  options: Omit<ExtractOptions, 'index'>,
): Promise<ExtractedDefinition> {
  const { folder, limits } = options
  const { members } = await extractArchive({ ...options, index: definitionFile })
  try {
    return { folder, members, head: await verifySums(folder, members, withDefaults(limits)) }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}
