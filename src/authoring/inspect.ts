import { shellWord } from '../base/printable.ts'
import type { Definition, PackDependency, Preset, Profile, Variable } from '../definition/definition.ts'
import { type GuessedImage, findImages } from '../definition/rules/images.ts'
import { describeRange } from '../definition/rules/pack-values.ts'
import { folderKey, foldersByKey } from '../definition/rules/sources.ts'
import { createHide } from '../definition/slots/secrets.ts'
import type { ExitName } from '../ctl/exit-codes.ts'
import { renderFacts, renderTable, type Column, plural } from '../ctl/layout.ts'
import { masked } from '../base/mask.ts'
import { describeContents, megabytes, type CommandContext } from './context.ts'
import { openArchive } from './opened.ts'

interface PackRow {
  readonly profile: string
  readonly name: string
  /** Empty if it has none. */
  readonly displayName: string
  readonly version: string
  readonly layer: string
  /** Whether its folder is in the archive. */
  readonly isIncluded: boolean
  readonly images: readonly string[]
  readonly guessedImages: readonly GuessedImage[]
  readonly dependencies: readonly PackDependency[]
  /** Names of presets; the details of the API show what they change. */
  readonly presets: readonly string[]
}

interface DependencyRow extends PackDependency {
  readonly pack: string
}

interface PresetRow extends Preset {
  readonly pack: string
}

interface ImageRow {
  readonly pack: string
  readonly image: string
  readonly note: string
}

interface VariableRow extends Pick<Variable, 'name' | 'format' | 'required' | 'defaultValue'> {
  readonly profile: string
}

const packColumns: readonly Column<PackRow>[] = [
  { title: 'PROFILE', read: ({ profile }) => profile, isFlexible: true },
  { title: 'LAYER', read: ({ layer }) => layer },
  { title: 'PACK', read: titleOf, isFlexible: true },
  { title: 'VERSION', read: ({ version }) => version },
  { title: 'INCLUDED', read: ({ isIncluded }) => (isIncluded ? 'yes' : 'no') },
]

const imageColumns: readonly Column<ImageRow>[] = [
  { title: 'PACK', read: ({ pack }) => pack, isFlexible: true },
  { title: 'IMAGE', read: ({ image }) => image, isFlexible: true },
  { title: 'NOTE', read: ({ note }) => note },
]

const dependencyColumns: readonly Column<DependencyRow>[] = [
  { title: 'PACK', read: ({ pack }) => pack, isFlexible: true },
  { title: 'DEPENDENCY', read: ({ type }) => type },
  { title: 'ON', read: (row) => `${row.packName}${describeRange(row)}`, isFlexible: true },
]

const presetColumns: readonly Column<PresetRow>[] = [
  { title: 'PRESET', read: ({ pack, name }) => `${pack}:${name}`, isFlexible: true },
  { title: 'NAME', read: ({ displayName }) => displayName, isFlexible: true },
  { title: 'GROUP', read: ({ group }) => group },
]

const variableColumns: readonly Column<VariableRow>[] = [
  { title: 'PROFILE', read: ({ profile }) => profile, isFlexible: true },
  { title: 'VARIABLE', read: ({ name }) => name, isFlexible: true },
  { title: 'FORMAT', read: ({ format }) => format },
  { title: 'REQUIRED', read: ({ required }) => (required === true ? 'yes' : 'no') },
  { title: 'DEFAULT', read: ({ defaultValue }) => defaultValue, isFlexible: true },
]

/** `edgehostctl definition inspect FILE`. */
export async function inspect(context: CommandContext, file: string): Promise<ExitName> {
  const { definition, problems, extracted, sizeBytes, sha256 } = await openArchive(context, file)
  const packs = listPacks(definition)
  const images = packs.flatMap(listImages)
  const dependencies = definition.packs.flatMap(({ name: pack, dependencies: all }) =>
    all.map((each): DependencyRow => ({ pack, ...each })),
  )
  const presets = definition.packs.flatMap(({ name: pack, presets: all }) =>
    all.map((each): PresetRow => ({ pack, ...each })),
  )
  const variables = definition.profiles.flatMap(rowsOf)
  const { formatVersion, name, version, description } = definition
  const contentBytes = [...extracted.members.values()].reduce((sum, member) => sum + member.sizeBytes, 0)
  const archive = { file, sizeBytes, sha256, memberCount: extracted.members.size, contentBytes }
  const contents = {
    profiles: definition.profiles.length,
    packs: definition.packs.length,
    members: extracted.members.size,
    bytes: contentBytes,
  }
  const profiles = definition.profiles.map((profile) => ({
    uid: profile.uid,
    name: profile.name,
    version: profile.version,
    type: profile.type,
    description: profile.description,
  }))
  const whole = { archive, formatVersion, name, version, description, profiles, packs, variables, problems }
  await context.output.show(whole, (paper) => {
    const facts = renderFacts(
      [
        { label: 'File', lines: [file] },
        { label: 'Definition', lines: [`${name} ${version}`.trim() || '-'] },
        ...(description === '' ? [] : [{ label: 'About', lines: [description] }]),
        { label: 'Holds', lines: [describeContents(contents)] },
        { label: 'Size', lines: [megabytes(sizeBytes)] },
        { label: 'SHA-256', lines: [sha256] },
        {
          label: 'Profiles',
          lines: profiles.map(
            (profile) => `${profile.name} ${profile.version} (${profile.type}, ${profile.uid})`,
          ),
        },
      ],
      paper,
    )
    return [
      facts,
      ...(packs.length === 0 ? [] : [`\n${renderTable(packs, packColumns, paper.columns)}`]),
      ...(images.length === 0 ? [] : [`\n${renderTable(images, imageColumns, paper.columns)}`]),
      ...(dependencies.length === 0
        ? []
        : [`\n${renderTable(dependencies, dependencyColumns, paper.columns)}`]),
      ...(presets.length === 0 ? [] : [`\n${renderTable(presets, presetColumns, paper.columns)}`]),
      ...(variables.length === 0 ? [] : [`\n${renderTable(variables, variableColumns, paper.columns)}`]),
    ].join('')
  })
  if (problems.length > 0 && context.output.format === 'table')
    context.output.note(
      `${plural(problems.length, 'problem')}; see: edgehostctl definition validate ${shellWord(file)}`,
    )
  return 'ok'
}

function listPacks(definition: Definition): PackRow[] {
  const { profiles } = definition
  const folders = foldersByKey(definition.packs)
  const imagesOf = findImages(definition)
  const hide = createHide(profiles)
  return profiles.flatMap((profile) =>
    profile.packs.map(({ name, displayName, tag, layer }, index): PackRow => {
      const folder = folders.get(folderKey(name, tag))
      const { images, guessed } = imagesOf(profile, index, folder)
      return {
        profile: profile.name,
        name,
        displayName: hide(displayName),
        version: tag,
        layer,
        isIncluded: folder !== undefined,
        images: images.map(hide),
        guessedImages: guessed.map((each) => ({ ...each, image: hide(each.image) })),
        dependencies: folder?.dependencies ?? [],
        presets: (folder?.presets ?? []).map((preset) => preset.name),
      }
    }),
  )
}

/** `name`, or `name (display name)` for a pack that a profile may contain more than once. */
function titleOf({ name, displayName }: PackRow): string {
  return displayName === '' ? name : `${name} (${displayName})`
}

function listImages(row: PackRow): ImageRow[] {
  const pack = titleOf(row)
  return [
    ...row.images.map((image) => ({ pack, image, note: '' })),
    ...row.guessedImages.map(({ image, isTagKnown }) => ({
      pack,
      image,
      note: isTagKnown ? 'guessed' : 'guessed, tag unknown',
    })),
  ]
}

function rowsOf({ name: profile, variables }: Profile): VariableRow[] {
  return variables.map(({ name, format, required, defaultValue, isSensitive }) => ({
    profile,
    name,
    ...(format === undefined ? {} : { format }),
    required: required === true,
    ...(defaultValue === undefined
      ? {}
      : { defaultValue: isSensitive === true && defaultValue !== '' ? masked : defaultValue }),
  }))
}
