import { isMask, masked } from '../../base/mask.ts'
import type {
  Definition,
  Pack as DefinitionPack,
  Preset,
  Profile,
  Variable as DefinitionVariable,
} from '../definition.ts'
import type { ClusterProfileDetail, Pack, Variable } from '../schemas.ts'
import type { ImageFinder } from '../rules/images.ts'
import { defaultOf } from '../rules/variable-rule.ts'
import { folderKey, foldersByKey } from '../rules/source-parts.ts'
import { createHide } from './secrets.ts'

/**
 * What the API shows of a definition. Defaults and options of sensitive variables are masked, also where they occur in
 * values and images of packs.
 * @param of finds the images of a pack, and the logo of its folder as a data URL, empty if it has none
 */
export function detailsOf(
  { profiles, packs }: Definition,
  of: {
    readonly images: ImageFinder['imagesOf']
    readonly logo: (pack: DefinitionPack) => string
  },
): ClusterProfileDetail[] {
  const folders = foldersByKey(packs)
  const hide = createHide(profiles)

  const packDetails = (profile: Profile, index: number): Pack[] => {
    const pack = profile.packs[index]
    if (pack === undefined) return []
    const { name, displayName, tag, layer, values } = pack
    const folder = folders.get(folderKey(name, tag))
    const { images, guessed } = of.images(profile, index, folder)
    return [
      {
        name,
        ...(displayName === '' ? {} : { displayName: hide(displayName) }),
        version: tag,
        layer,
        values: hide(values.trim() === '' ? (folder?.values ?? '') : values),
        logo: folder === undefined ? '' : of.logo(folder),
        ...(folder?.dependencies.length ? { dependencies: [...folder.dependencies] } : {}),
        ...(folder?.presets.length
          ? { presets: folder.presets.map((preset) => showPreset(preset, hide)) }
          : {}),
        images: images.map(hide),
        guessedImages: guessed.map(({ image, isTagKnown }) => ({ image: hide(image), isTagKnown })),
      },
    ]
  }

  return profiles.map((profile) => ({
    profileUid: profile.uid,
    profileName: profile.name,
    profileVersion: profile.version,
    profileType: profile.type,
    profileDescription: profile.description,
    profileTags: profile.tags.join(','),
    packs: profile.packs.flatMap((_, index) => packDetails(profile, index)),
    variables: profile.variables.map((variable) => ({ ...variableDetails(variable), ...valueOf(variable) })),
  }))
}

const showPreset = ({ name, displayName, group, remove, add }: Preset, hide: (text: string) => string) => ({
  ...{ name, displayName, group, remove: [...remove], add: hide(add) },
})

type Option = NonNullable<DefinitionVariable['options']>[number]

/** A variable as replies show it: the default and the options of a sensitive one are masked. */
export function variableDetails({ options = [], ...variable }: DefinitionVariable): Variable {
  const isSensitive = variable.isSensitive === true
  const isUnset = isSensitive && isMask(variable.defaultValue ?? '')
  const shown = options.map((option) => optionDetails(option, isSensitive))
  return {
    ...variable,
    ...(isSensitive && variable.defaultValue ? { defaultValue: isUnset ? '' : masked } : {}),
    ...(shown.length === 0 ? {} : { options: shown }),
  }
}

function valueOf(variable: DefinitionVariable): Pick<Variable, 'value'> {
  const value = defaultOf(variable)
  return value === undefined ? {} : { value: variable.isSensitive === true ? masked : value }
}

/** The fields that are set; exports write null for the others. A label or a description often repeats the value. */
function optionDetails({ value, label, description, default: isDefault }: Option, isSensitive: boolean) {
  const hide = (text: string) => (isSensitive && value !== '' && text.includes(value) ? masked : text)
  return {
    value: hide(value),
    ...(label ? { label: hide(label) } : {}),
    ...(description ? { description: hide(description) } : {}),
    ...(isDefault ? { default: true } : {}),
  }
}
