import { annotations, artifactTypes, mediaTypes } from '../../content/format/media-types.ts'
import { makeArtifact } from './artifact.ts'
import { readFileBlob } from './file-blob.ts'
import { checkName, splitNamed } from './named-value.ts'
import type { Part } from './part.ts'

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
