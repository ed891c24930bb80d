import type { Definition, Pack, Profile, ProfilePack } from '../../../definition/definition.ts'
import type { RenderedText } from '../../../definition/rules/macros.ts'
import { folderKey, foldersByKey, textsOfPack } from '../../../definition/rules/source-parts.ts'
import { isRecord } from '../../../base/json.ts'
import { packIdOf } from '../../wanted.ts'
import { readPackSettings, type PackSettings } from './pack-settings.ts'
import { readPlain } from '../../../definition/rules/plain-values.ts'
import { type Mapping } from './plain.ts'

/** A pack of a profile with its texts, in which all macros are resolved. */
export interface ClusterPack {
  /** `WantedPack.id` */
  readonly id: string
  readonly profile: Profile
  readonly pack: ProfilePack
  readonly folder: Pack | undefined
  /** Empty if its values are not a mapping, which is a problem of the definition. */
  readonly values: Mapping
  readonly settings: PackSettings
  readonly manifests: readonly ManifestText[]
}

export interface ManifestText {
  /** Key of its values below `manifests`: its name in the profile, or that of its file without the ending. */
  readonly name: string
  readonly isTemplate: boolean
  readonly content: string
}

/** All packs of a definition in the order of its profiles. @param texts what `renderDefinition` made of it */
export function readClusterPacks(
  { profiles, packs }: Pick<Definition, 'profiles' | 'packs'>,
  texts: readonly RenderedText[],
): ClusterPack[] {
  const folders = foldersByKey(packs)
  // Packs with different display names share the text of their folder; its macros have the same values in all of them.
  const rendered = new Map(texts.map((text) => [text.place, text]))
  return profiles.flatMap((profile) =>
    profile.packs.map((pack, index): ClusterPack => {
      const folder = folders.get(folderKey(pack.name, pack.tag))
      const { values: ofValues, manifests } = textsOfPack(profile, index, folder)
      const [plain] = readPlain((ofValues && rendered.get(ofValues.place)?.content) ?? '').documents
      const values = isRecord(plain) ? plain : {}
      return {
        id: packId(profile, pack),
        ...{ profile, pack, folder, values, settings: readPackSettings(values) },
        manifests: manifests.flatMap(({ place }) => {
          const text = rendered.get(place)
          const isStray =
            folder?.named.manifests?.includes(place) === false && place.startsWith(`${folder.place}/`)
          if (!text || isStray) return []
          const { isTemplate, content } = text
          return [{ name: manifestName(pack, place), isTemplate, content }]
        }),
      }
    }),
  )
}

export const packId = ({ uid }: Profile, { name, displayName }: ProfilePack): string =>
  packIdOf(uid, name, displayName)

/** The name of a manifest of a profile, by its place there; that of a file of the folder otherwise. */
function manifestName({ manifests }: ProfilePack, place: string): string {
  const number = /\.manifests\[(\d+)\]\.content$/.exec(place)?.[1]
  const name = number === undefined ? undefined : manifests[Number(number)]?.name
  if (name !== undefined) return name || `manifest-${number}`
  return (place.split('/').at(-1) ?? '').replace(/\.ya?ml$/i, '')
}

/** Layers without which no cluster starts, in the order of their installation; all others are add-ons. */
const layers = ['os', 'k8s', 'cni', 'csi']

/**
 * When a pack is installed: packs with a lower rank come before it. What packs of the layers os and k8s install comes together with
 * the CNI, since a workload of theirs becomes available only with it.
 */
function rankOf({ pack, settings }: Pick<ClusterPack, 'pack' | 'settings'>): readonly [number, number] {
  const layer = layers.indexOf(pack.layer)
  return layer < 0 ? [layers.length, settings.priority] : [Math.max(layer, layers.indexOf('cni')), 0]
}

/** Compares packs by the order of their installation; 0 for packs that are independent. */
export function compareOrder(one: Pick<ClusterPack, 'pack' | 'settings'>, other: typeof one): number {
  const [first, second] = [rankOf(one), rankOf(other)]
  return first[0] - second[0] || first[1] - second[1]
}
