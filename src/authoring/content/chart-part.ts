import { readChartFile } from '../../archive/chart-archive.ts'
import { annotations, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { makeArtifact, makeBlob } from './artifact.ts'
import { canonicalJson } from './canonical-json.ts'
import { parseChartFile } from './chart-file.ts'
import { readFileBlob } from './file-blob.ts'
import { referenceOf } from './named-value.ts'
import type { Part } from './part.ts'

/**
 * `--chart FILE`: a chart as `helm push` stores it, without the time of the push.
 * Source: https://helm.sh/docs/topics/registries/#oci-feature-deprecation-and-behavior-changes-with-v380
 * @param onRead called with the number of bytes of each chunk that was read
 * @throws Failure or AppError with the reason; the system's errors as they are
 */
export async function readChartPart(
  file: string,
  place: string,
  onRead: (bytes: number) => void,
): Promise<Part> {
  const found = await readChartFile(file)
  if ('refusal' in found) throw new Failure('failed', `${place} ${found.refusal}`)
  const { name, version, metadata, described } = parseChartFile(found.text, place)
  const blob = await readFileBlob({ path: file, place, onRead })
  const titled = { [annotations.title]: name, [annotations.version]: version }
  const { entry, blobs } = makeArtifact({
    config: {
      blob: makeBlob(place, Buffer.from(canonicalJson(metadata))),
      mediaType: mediaTypes.chartConfig,
    },
    layers: [{ blob, mediaType: mediaTypes.chartContent }],
    annotations: { ...described, ...titled },
    entryAnnotations: { ...titled, [annotations.refName]: referenceOf(name, version) },
    place,
  })
  return { place, entries: [{ ...entry, artifactType: mediaTypes.chartConfig }], blobs }
}
