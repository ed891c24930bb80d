import type { Definition, Pack, Profile } from '../definition.ts'
import { findMacros, type Macro } from './macro.ts'

/** A YAML text of a definition, and the profile and pack that use it. */
export interface SourcePart {
  readonly place: string
  readonly role: 'values' | 'manifest'
  readonly packName: string
  /** Layer of that pack. */
  readonly layer: string
  /** The profile whose variables its macros use; undefined if no profile uses this text, and its macros are ignored. */
  readonly profile: Profile | undefined
  /** Display names of the packs that use it: more than one if the profile contains the pack more than once. */
  readonly displayNames: ReadonlySet<string>
  readonly content: string
  readonly macros: readonly Macro[]
}

/** A key that identifies the folder of a pack. */
export const folderKey = (name: string, version: string): string => `${name}\0${version}`

/** Folders by `folderKey`. If two folders have the same key, which is reported elsewhere, the first one counts. */
export const foldersByKey = (packs: readonly Pack[]): Map<string, Pack> =>
  new Map(packs.toReversed().map((pack) => [folderKey(pack.name, pack.version), pack]))

/**
 * Every YAML text of a definition, each once: in the order of profiles and packs, then the unused ones. Values that a
 * profile gives a pack replace all values of the pack folder; if it gives none, those of the folder apply.
 */
export function gatherParts({ profiles, packs }: Definition): SourcePart[] {
  const parts = new Map<string, SourcePart & { readonly displayNames: Set<string> }>()
  const add = (part: Omit<SourcePart, 'macros' | 'displayNames'>, displayName = '') => {
    const { place, profile } = part
    const known = parts.get(place)
    const displayNames = known?.displayNames ?? new Set()
    if (known === undefined) parts.set(place, { ...part, displayNames, macros: findMacros(part.content) })
    // A pack in two profiles is reported elsewhere; its texts belong to the first profile.
    if (profile !== undefined && profile === (known ?? part).profile) displayNames.add(displayName)
  }

  const folders = foldersByKey(packs)
  for (const profile of profiles) {
    profile.packs.forEach(({ name, displayName, tag, layer }, index) => {
      const { values, manifests } = textsOfPack(profile, index, folders.get(folderKey(name, tag)))
      const part = { packName: name, layer, profile }
      if (values) add({ ...part, ...values, role: 'values' }, displayName)
      for (const text of manifests) add({ ...part, ...text, role: 'manifest' }, displayName)
    })
  }
  // Texts that no profile uses, and values that a profile replaces.
  for (const pack of packs)
    for (const text of textsOf(pack))
      add({ ...text, packName: pack.name, layer: pack.layer, profile: undefined })
  return [...parts.values()]
}

function textsOf({ place, values, manifests }: Pack): Pick<SourcePart, 'place' | 'role' | 'content'>[] {
  return [
    ...(values === undefined
      ? []
      : [{ place: `${place}/values.yaml`, role: 'values' as const, content: values }]),
    ...manifests.map((manifest) => ({ ...manifest, role: 'manifest' as const })),
  ]
}

/** The texts of one pack of a profile: the values that apply, then the manifests of the folder, then those in the profile. */
export function textsOfPack(profile: Profile, index: number, folder: Pack | undefined) {
  const pack = profile.packs[index]
  const place = `${profile.place}#spec.template.packs[${index}]`
  const given = pack?.values.trim() ? { place: `${place}.values`, content: pack.values } : undefined
  const own = folder ? textsOf(folder) : []
  return {
    values: given ?? own.find(({ role }) => role === 'values'),
    manifests: [
      ...own.filter(({ role }) => role === 'manifest'),
      ...(pack?.manifests ?? []).map(({ content }, number) => ({
        place: `${place}.manifests[${number}].content`,
        content,
      })),
    ],
  }
}
