import { createReadStream } from 'node:fs'
import { decompress } from './compression.ts'
import { bundleArchiveLimits, type ArchiveLimits } from './limits.ts'
import { createMemberNames } from './member-names.ts'
import { readTar } from './tar-reader.ts'

const MiB = 2 ** 20

/** Charts are small; Helm itself reads at most 100 MiB. */
export const chartLimits: ArchiveLimits = {
  ...bundleArchiveLimits,
  noun: 'chart',
  isPlainAllowed: false,
  members: 50_000,
  memberBytes: 100 * MiB,
  unpackedBytes: 200 * MiB,
}

const chartFileBytes = MiB

/**
 * The text of `NAME/Chart.yaml` in the archive of a chart. The archive is read to its end, so that a damaged one is noticed here.
 * @returns or why it is not a chart, as the end of a sentence
 * @throws AppError if the archive is damaged or too large; the system's errors as they are
 */
export async function readChartFile(
  file: string,
): Promise<{ readonly text: string } | { readonly refusal: string }> {
  const names = createMemberNames(chartLimits)
  let text: string | undefined
  for await (const { name, kind, sizeBytes, content } of readTar(
    decompress(createReadStream(file), chartLimits),
    chartLimits,
  )) {
    const path = names.admit(name, kind)
    if (kind !== 'file' || !/^[^/]+\/Chart\.yaml$/.test(path)) continue
    if (text !== undefined) return { refusal: 'is not a chart: it has two files Chart.yaml' }
    if (sizeBytes > chartFileBytes)
      return { refusal: `has a Chart.yaml of ${sizeBytes} bytes; ${chartFileBytes} are allowed` }
    const parts: Buffer[] = []
    for await (const part of content) parts.push(part)
    text = Buffer.concat(parts).toString()
  }
  return text === undefined
    ? { refusal: 'is not a chart: Chart.yaml is missing in it; make one with helm package' }
    : { text }
}
