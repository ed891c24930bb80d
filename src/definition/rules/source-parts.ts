import type { Definition, Pack, Profile } from '../definition.ts'
import { findMacros, type Macro } from './macro.ts'

/** A text of a definition that is YAML, and who uses it. */
export interface SourcePart {
  readonly place: string
  readonly role: 'values' | 'manifest'
  readonly packName: string
  /** Of that pack. */
  readonly layer: string
  /** Whose variables its macros mean; undefined: no profile uses this text, and its macros mean nothing. */
  readonly profile: Profile | undefined
  /** Display names of the packs of the profile that use it: more than one where the pack stands there more than once. */
  readonly displayNames: ReadonlySet<string>
  readonly content: string
  readonly macros: readonly Macro[]
}

/** Tells folders of packs apart. */
export const folderKey = (name: string, version: string): string => `${name}\0${version}`

/** Folders by `folderKey`. Of two that hold the same, which is reported elsewhere, the first. */
export const foldersByKey = (packs: readonly Pack[]): Map<string, Pack> =>
  new Map(packs.toReversed().map((pack) => [folderKey(pack.name, pack.version), pack]))

/**
 * Every YAML text of a definition, each once: in the order of profiles and packs, then those that nothing uses. The values that a profile gives a pack
 * stand in for all of the pack's own; where it gives none, the pack's own count.
 */
export function gatherParts({ profiles, packs }: Definition): SourcePart[] {
  const parts = new Map<string, SourcePart & { readonly displayNames: Set<string> }>()
  const add = (part: Omit<SourcePart, 'macros' | 'displayNames'>, displayName = '') => {
    const { place, profile } = part
    const known = parts.get(place)
    const displayNames = known?.displayNames ?? new Set()
    if (known === undefined) parts.set(place, { ...part, displayNames, macros: findMacros(part.content) })
    // A pack in two profiles is reported as that; its folder belongs to the first.
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
  // Those that no profile uses, and values that a profile replaces.
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

/** The texts of one pack of a profile: the values that count for it, and its manifests, those that the profile holds last. */
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
