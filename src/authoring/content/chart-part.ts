import { createReadStream } from 'node:fs'
import { decompress } from '../../archive/compression.ts'
import { createMemberNames } from '../../archive/member-names.ts'
import { readTar } from '../../archive/tar-reader.ts'
import { annotations, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { makeArtifact, makeBlob } from './artifact.ts'
import { canonicalJson } from './canonical-json.ts'
import { parseChartFile } from './chart-file.ts'
import { readFileBlob } from './file-blob.ts'
import { chartLimits } from './limits.ts'
import { referenceOf } from './named-value.ts'
import type { Part } from './part.ts'

const chartFileBytes = 2 ** 20

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
  const { name, version, metadata, described } = parseChartFile(await readChartFile(file, place), place)
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

/** The text of `NAME/Chart.yaml`. The archive is read to its end, so that a damaged one is noticed here. */
async function readChartFile(file: string, place: string): Promise<string> {
  const names = createMemberNames(chartLimits)
  let text: string | undefined
  for await (const { name, kind, sizeBytes, content } of readTar(
    decompress(createReadStream(file), chartLimits),
    chartLimits,
  )) {
    const path = names.admit(name, kind)
    if (kind !== 'file' || !/^[^/]+\/Chart\.yaml$/.test(path)) continue
    if (text !== undefined)
      throw new Failure('failed', `${place} is not a chart: it has two files Chart.yaml`)
    if (sizeBytes > chartFileBytes)
      throw new Failure('failed', `${place}: ${path} has ${sizeBytes} bytes; ${chartFileBytes} are allowed`)
    const parts: Buffer[] = []
    for await (const part of content) parts.push(part)
    text = Buffer.concat(parts).toString()
  }
  if (text === undefined)
    throw new Failure(
      'failed',
      `${place} is not a chart: Chart.yaml is missing in it; make one with helm package`,
    )
  return text
}
