import { rm } from 'node:fs/promises'
import { extractArchive, type Extracted, type ExtractOptions } from '../../archive/extract.ts'
import { withDefaults } from '../../archive/limits.ts'
import { definitionFile, type DefinitionHead } from '../format/definition-file.ts'
import { verifySums } from './verify-sums.ts'

/** A definition that is unpacked in a folder, all its sums verified. */
export interface ExtractedDefinition extends Extracted {
  /** The content of definition.yaml; undefined for archives of the existing layout, which have no such file. */
  readonly head: DefinitionHead | undefined
}

/**
 * Unpacks a definition archive and verifies the sum of every member. After a failure the folder is removed.
 * @throws the errors of `extractArchive` and `verifySums`
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
