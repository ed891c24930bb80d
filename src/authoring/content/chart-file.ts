import { isRecord } from '../../base/json.ts'
import { parseYaml } from '../../definition/format/parse-yaml.ts'
import { annotations } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/text.ts'

/** What Chart.yaml says. */
export interface ChartFile {
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
// What helm and the registries of charts accept.
const nameForm = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,249}$/
const versionForm =
  /^v?\d+(?:\.\d+){0,2}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

/** @throws Failure with the place, the field and the reason */
export function parseChartFile(text: string, place: string): ChartFile {
  const refuse = (what: string) => new Failure('failed', `${place}: Chart.yaml ${what}`)
  const { value, problems } = parseYaml('Chart.yaml', text)
  const [problem] = problems
  if (problem) throw new Failure('failed', `${place}: ${problem.place} ${problem.message}`)
  if (!isRecord(value)) throw refuse('is not a list of fields')
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
    ...{ name, version },
    metadata: Object.fromEntries(set.map((field) => [field, value[field]])),
    described: describe(value),
  }
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
