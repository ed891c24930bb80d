import { isMap, isScalar } from 'yaml'
import type { Pack, Profile, ProfilePack } from '../definition.ts'
import { findMacros } from '../rules/macro.ts'
import { textOf } from '../rules/pack-values.ts'
import { readYaml } from '../rules/yaml-text.ts'
import { chooseVersion } from './choose-version.ts'
import { displayNameKey, type ExportedPack, type ReadProfile } from './read-profile.ts'

/** The profiles, each pack with the version of the folder that it refers to and with its display name. */
export function resolvePacks(profiles: readonly ReadProfile[], packs: readonly Pack[]): Profile[] {
  const folders = Map.groupBy(packs, ({ name }) => name)
  return profiles.map((profile) => ({
    ...profile,
    packs: profile.packs.map((pack) => resolve(pack, folders.get(pack.name) ?? [])),
  }))
}

/** @param folders of the pack's name */
function resolve({ version, ...pack }: ExportedPack, folders: readonly Pack[]): ProfilePack {
  const tag = chooseVersion(
    pack.tag,
    version,
    folders.map((folder) => folder.version),
  )
  const folder = folders.find((each) => each.version === tag)
  const values = pack.values.trim() === '' ? (folder?.values ?? '') : pack.values
  return { ...pack, tag, displayName: pack.displayName || displayNameIn(values) }
}

/** `pack."spectrocloud.com/display-name"` of values; the documentation of the platform also writes it without `pack`. */
function displayNameIn(values: string): string {
  if (!values.includes(displayNameKey)) return ''
  const macros = findMacros(values)
  let found = ''
  readYaml(values, macros, ({ contents }, { unmask }) => {
    const inPack = isMap(contents) ? contents.get('pack') : undefined
    for (const map of [inPack, contents]) {
      const node = isMap(map) ? map.get(displayNameKey, true) : undefined
      if (found === '' && isScalar(node) && node.value !== null)
        found = unmask(textOf(node), (index) => values.slice(macros[index]?.start, macros[index]?.end))
    }
  })
  return found
}
