import type { Scalar } from 'yaml'
import { isRecord } from '../../base/json.ts'
import { exactDigits } from '../../base/write-yaml.ts'
import { readPlain, readValues } from '../../definition/rules/plain-values.ts'
import { scalarOf } from '../../definition/rules/yaml-text.ts'
import { annotations, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import { readChartFile } from '../../archive/chart-archive.ts'
import { makeArtifact, makeBlob, canonicalJson, readFileBlob, referenceOf, type Part } from './part.ts'

/** The content of Chart.yaml. */
interface ChartFile {
  readonly name: string
  readonly version: string
  /** The known fields that are set, which are the configuration of the artifact. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Annotations of the manifest that helm makes of them, without name and version. */
  readonly described: Readonly<Record<string, string>>
}

// Fields of chart.Metadata in helm.sh/helm/v3/pkg/chart; others are not in the configuration that helm pushes.
const fields = [
  ...['name', 'home', 'sources', 'version', 'description', 'keywords', 'maintainers', 'icon', 'apiVersion'],
  ...['condition', 'tags', 'appVersion', 'deprecated', 'annotations', 'kubeVersion', 'dependencies', 'type'],
]
// Names that helm and the registries of charts accept.
const nameForm = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,249}$/
const versionForm =
  /^v?\d+(?:\.\d+){0,2}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

/** @throws Failure with the place, the field and the reason */
export function parseChartFile(text: string, place: string): ChartFile {
  const refuse = (what: string) => new Failure('failed', `${place}: Chart.yaml ${what}`)
  const [problem] = readPlain(text).problems
  if (problem !== undefined) throw refuse(problem)
  // helm reads the first one.
  const [read] = readValues(text, scalarIn).documents
  if (!isRecord(read?.value)) throw refuse('is not a list of fields')
  const value = asRead(read.value)
  const textOf = (field: string) => {
    const found = value[field]
    if (typeof found !== 'string' || found === '') throw refuse(`has no ${field}, which must be a text`)
    return found
  }
  const [name, version] = [textOf('name'), textOf('version')]
  if (!nameForm.test(name))
    throw refuse(`has the name ${oneLine(name)}; it must consist of letters, digits, ., _ and -`)
  if (!versionForm.test(version))
    throw refuse(`has the version ${oneLine(version)}, which is not a semantic version`)
  if (version.length > 128)
    throw refuse(`has a version of ${version.length} characters; the tag of an image has at most 128`)
  textOf('apiVersion')
  const set = fields.filter((field) => isSet(value[field]))
  return {
    name,
    version,
    metadata: Object.fromEntries(set.map((field) => [field, value[field]])),
    described: describe(value),
  }
}

/** Fields that are no text, or have parts that are none. */
const flags = new Set(['deprecated', 'import-values', 'export-values', 'enabled'])

/** As helm reads it: a number or boolean in a field of text is text, https://pkg.go.dev/sigs.k8s.io/yaml#Unmarshal. */
function asRead(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const read = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(read)
    if (isRecord(each)) return asRead(each)
    return typeof each === 'boolean' ? String(each) : each
  }
  return Object.fromEntries(
    Object.entries(value).map(([field, each]) => [field, flags.has(field) ? each : read(each)]),
  )
}

/** A number as text: digits of a whole one, otherwise Go's strconv.FormatFloat(value, 'g', -1, 64). */
function scalarIn(scalar: Scalar): unknown {
  const value = scalarOf(scalar)
  if (typeof value !== 'number') return value
  const digits = exactDigits(scalar.source ?? '')
  if (digits !== undefined) return digits
  const shortest = value.toExponential()
  const exponent = Number(shortest.split('e')[1])
  if (exponent >= -4 && exponent < 6) return String(value)
  return shortest.replace(/e([-+])(\d)$/, 'e$10$2')
}

/** As generateChartOCIAnnotations in helm.sh/helm/v3/pkg/registry. */
function describe(chart: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const own = isRecord(chart.annotations) ? chart.annotations : {}
  const sources = Array.isArray(chart.sources) ? (chart.sources as unknown[]) : []
  const maintainers = Array.isArray(chart.maintainers) ? (chart.maintainers as unknown[]) : []
  const authors = maintainers.filter(isRecord).map(({ name, email }) => {
    const address = typeof email === 'string' && email !== '' ? ` (${email})` : ''
    return `${typeof name === 'string' ? name : ''}${address}`
  })
  const all: Readonly<Record<string, unknown>> = {
    'org.opencontainers.image.description': chart.description,
    'org.opencontainers.image.url': chart.home,
    'org.opencontainers.image.source': sources[0],
    'org.opencontainers.image.authors': authors.join(', '),
    ...own,
  }
  const kept = Object.entries(all).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' && entry[1] !== '' && entry[0] !== annotations.created,
  )
  return Object.fromEntries(kept)
}

/** Go leaves out fields with an empty value. */
const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  value !== false &&
  !(Array.isArray(value) && value.length === 0)

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
