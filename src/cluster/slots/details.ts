import { masked } from '../../errors/mask.ts'
import type {
  Definition,
  Pack as DefinitionPack,
  Profile,
  Variable as DefinitionVariable,
} from '../definition.ts'
import type { ClusterProfileDetail, Pack, Variable } from '../schemas.ts'
import { createHide } from './secrets.ts'

/**
 * What the API shows of a definition. Defaults and options of sensitive variables are masked, also where they stand in
 * values and images of packs.
 * @param of what is found elsewhere: the images of a pack folder, and a data URL of its logo, empty where it has none
 */
export function detailsOf(
  { profiles, packs }: Definition,
  of: {
    readonly images: (pack: DefinitionPack) => readonly string[]
    readonly logo: (pack: DefinitionPack) => string
  },
): ClusterProfileDetail[] {
  // Of two folders that hold the same, which is reported elsewhere, the first.
  const folders = new Map(packs.toReversed().map((pack) => [`${pack.name}\0${pack.version}`, pack]))
  const hide = createHide(profiles)

  const packDetails = ({ name, tag, layer, values }: Profile['packs'][number]): Pack => {
    const folder = folders.get(`${name}\0${tag}`)
    return {
      name,
      version: tag,
      layer,
      values: hide(values.trim() === '' ? (folder?.values ?? '') : values),
      logo: folder === undefined ? '' : of.logo(folder),
      images: folder === undefined ? [] : of.images(folder).map(hide),
    }
  }

  return profiles.map((profile) => ({
    profileUid: profile.uid,
    profileName: profile.name,
    profileVersion: profile.version,
    profileType: profile.type,
    profileDescription: profile.description,
    profileTags: profile.tags.join(','),
    packs: profile.packs.map(packDetails),
    variables: profile.variables.map(variableDetails),
  }))
}

type Option = NonNullable<DefinitionVariable['options']>[number]

function variableDetails({ options = [], ...variable }: DefinitionVariable): Variable {
  const isSensitive = variable.isSensitive === true
  const shown = options.map((option) => optionDetails(option, isSensitive))
  return {
    ...variable,
    ...(isSensitive && variable.defaultValue ? { defaultValue: masked } : {}),
    ...(shown.length === 0 ? {} : { options: shown }),
  }
}

/** Of its fields those that are set; exports write null for others. A label or a description often repeats the value. */
function optionDetails({ value, label, description, default: isDefault }: Option, isSensitive: boolean) {
  const hide = (text: string) => (isSensitive && value !== '' && text.includes(value) ? masked : text)
  return {
    value: hide(value),
    ...(label ? { label: hide(label) } : {}),
    ...(description ? { description: hide(description) } : {}),
    ...(isDefault ? { default: true } : {}),
  }
}
