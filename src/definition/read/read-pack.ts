import type { Static } from 'typebox'
import type { Pack, PackDependency, Preset, Problem } from '../definition.ts'
import { checkShape, checkSpelling } from '../format/check-shape.ts'
import { PackFile, PresetsFile } from '../format/format.ts'
import { parseJson, parseYaml } from '../format/parse.ts'
import type { Text } from './read-profile.ts'

/** The files of a pack folder. */
export interface PackFolder {
  /** `packs/<name>-<version>` */
  readonly place: string
  /** Paths below the folder. */
  readonly files: readonly string[]
  /** Reads the text of one of them. @returns undefined, and a problem is reported, if it cannot be read */
  read(path: string): Promise<Text | undefined>
}

const yaml = /\.ya?ml$/i
const logo = 'logo.png'
// Charts and images: already packed, and never read as text.
const packed = /\.(?:tgz|tar|gz|zst|xz|bz2|zip|iso|img|bin)$/i

/** Whether `readDefinition` may read a member; `extractDefinition` need not unpack the others. */
export const isReadWhole = (path: string): boolean => !packed.test(path)

/**
 * Reads a pack in the public layout. Its manifests: all of pack.json and every YAML file below manifests/; its charts:
 * all of pack.json and every archive in charts/.
 * @returns no pack if pack.json cannot be used
 */
export async function readPack({
  place,
  files,
  read,
}: PackFolder): Promise<{ pack: Pack | undefined; problems: Problem[] }> {
  const described = await read('pack.json')
  if (described === undefined) return { pack: undefined, problems: [] }
  const { file, problems } = parsePackFile(described)
  if (file === undefined) return { pack: undefined, problems }
  const inFolder = new Set(files)
  const namedIn = (field: 'charts' | 'kubeManifests') =>
    (file[field] ?? []).map((path) => path.replace(/^(?:\.\/)+/, ''))
  // A chart may be a folder.
  const isPresent = (path: string) => inFolder.has(path) || files.some((each) => each.startsWith(`${path}/`))
  const placesIn = (field: 'charts' | 'kubeManifests') => {
    const named = namedIn(field)
    return named.length === 0 ? undefined : named.filter(isPresent).map((path) => `${place}/${path}`)
  }

  const collect = (field: 'charts' | 'kubeManifests', belongs: (path: string) => boolean): string[] => {
    const named = namedIn(field)
    for (const [index, path] of named.entries())
      if (!isPresent(path))
        problems.push({
          code: 'MemberMissing',
          severity: 'error',
          place: `${described.place}#${field}[${index}]`,
          message: `names ${path}, which is not in the folder of the pack`,
        })
    return [...new Set([...named.filter((path) => inFolder.has(path)), ...files.filter(belongs)])].sort()
  }

  const manifests: Text[] = []
  for (const path of collect('kubeManifests', (each) => each.startsWith('manifests/') && yaml.test(each))) {
    const text = await read(path)
    if (text !== undefined) manifests.push(text)
  }
  const charts = collect('charts', (path) => /^charts\/[^/]+\.tgz$/.test(path))
  const schema = inFolder.has('schema.yaml') ? await read('schema.yaml') : undefined
  const presetsText = inFolder.has('presets.yaml') ? await read('presets.yaml') : undefined
  const found = presetsText ? parsePresets(presetsText) : { presets: [], problems: [] }
  problems.push(...found.problems)
  const pack: Pack = {
    place,
    name: file.name,
    version: file.version,
    displayName: file.displayName ?? file.name,
    layer: file.layer,
    values: inFolder.has('values.yaml') ? (await read('values.yaml'))?.content : undefined,
    manifests,
    charts: charts.map((path) => `${place}/${path}`),
    named: { charts: placesIn('charts'), manifests: placesIn('kubeManifests') },
    logo: inFolder.has(logo) ? `${place}/${logo}` : undefined,
    dependencies: (file.constraints?.dependencies ?? []).map(toDependency),
    schema,
    presets: found.presets,
  }
  return { pack, problems }
}

type WrittenDependency = NonNullable<
  NonNullable<Static<typeof PackFile>['constraints']>['dependencies']
>[number]

const toDependency = ({
  packName,
  layer,
  minVersion,
  maxVersion,
  type,
}: WrittenDependency): PackDependency => ({
  packName,
  layer: layer ?? '',
  minVersion: minVersion ?? '',
  maxVersion: maxVersion ?? '',
  type: type ?? '',
})

/** The presets of a presets.yaml. If anything in it is malformed: a warning and no presets, since a pack works without them. */
export function parsePresets({ place, content }: Text): { presets: Preset[]; problems: Problem[] } {
  const { value, problems } = parseYaml(place, content)
  const wrong = problems.length > 0 ? problems : checkShape(place, value, PresetsFile)
  if (wrong.length > 0)
    return {
      presets: [],
      problems: wrong.map((problem) => ({ ...problem, code: 'PresetInvalid', severity: 'warning' })),
    }
  const { presets } = value as Static<typeof PresetsFile>
  return {
    presets: presets.map(({ name, displayName, group, remove, add }) => ({
      name,
      displayName: displayName ?? '',
      group: group ?? '',
      remove: remove ?? [],
      add: add ?? '',
    })),
    problems: [],
  }
}

/**
 * The content of a pack.json.
 * @returns no file if anything in it is malformed
 */
export function parsePackFile({ place, content }: Text): {
  file: Static<typeof PackFile> | undefined
  problems: Problem[]
} {
  const { value, problems: found } = parseJson(place, content)
  const problems = found.length > 0 ? found : checkShape(place, value, PackFile)
  if (problems.length > 0) return { file: undefined, problems }
  return { file: value as Static<typeof PackFile>, problems: checkSpelling(place, value, PackFile) }
}
