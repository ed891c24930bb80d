import type { Problem } from '../../definition/definition.ts'
import { annotations, artifactTypes, definitionMark, mediaTypes } from '../../content/format/media-types.ts'
import type { CommandContext } from '../command-context.ts'
import { findProblems } from '../validate.ts'
import { makeArtifact } from './artifact.ts'
import { readFileBlob } from './file-blob.ts'
import type { Part } from './part.ts'

/**
 * `--definition FILE`: the first layer is the archive, and the descriptor in index.json marks it.
 * @returns the part, and the problems that `definition validate` shows; with an error among them it is not to be used
 */
export async function readDefinitionPart(
  context: CommandContext,
  file: string,
): Promise<{ part: Part; problems: readonly Problem[] }> {
  const place = `--definition ${file}`
  const problems = await findProblems(context, file)
  const blob = await readFileBlob({ path: file, place })
  const { entry, blobs } = makeArtifact({
    artifactType: artifactTypes.definition,
    layers: [{ blob, mediaType: mediaTypes.definitionContent }],
    entryAnnotations: { [annotations.contentType]: definitionMark },
    place,
  })
  return { part: { place, entries: [entry], blobs }, problems }
}
