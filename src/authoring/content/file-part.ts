import { annotations, artifactTypes, mediaTypes, definitionMark } from '../../content/format/media-types.ts'
import { makeArtifact, readFileBlob, checkName, splitNamed, type Part } from './part.ts'
import type { Problem } from '../../definition/definition.ts'
import type { CommandContext } from '../context.ts'
import { findProblems } from '../opened.ts'

/**
 * `--file NAME=FILE`: an artifact with the file as its only layer.
 * @param onRead called with the number of bytes of each chunk that was read
 * @throws Failure that names the option and the reason
 */
export async function readFilePart(value: string, onRead: (bytes: number) => void): Promise<Part> {
  const place = `--file ${value}`
  const { name, path } = splitNamed(place, value, 'NAME=FILE')
  checkName(place, 'the name', name)
  const blob = await readFileBlob({ path, place, onRead })
  const titled = { [annotations.title]: name }
  const { entry, blobs } = makeArtifact({
    artifactType: artifactTypes.file,
    layers: [{ blob, mediaType: mediaTypes.fileContent, annotations: titled }],
    annotations: titled,
    entryAnnotations: titled,
    place,
  })
  return { place, entries: [entry], blobs }
}

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
