import { printable } from '../../base/printable.ts'
import type { Definition, Profile, ProfilePack } from '../definition.ts'
import { type Report, createSuggest } from './problem-list.ts'

/** Layers of which every cluster needs a pack. */
export const requiredLayers: readonly string[] = ['os', 'k8s', 'cni']
const infrastructureLayers = new Set([...requiredLayers, 'csi'])

// Not semver: `0.30.0-5.5.2026`, `v1.1.0`, `1.16`, `1.33.x` all occur. A version is part of a path and of image tags.
const version = /^v?[0-9](?:[0-9A-Za-z._+-]{0,126}[0-9A-Za-z])?$/

/** Checks which profiles and packs a definition combines, and whether every pack that a profile names is in the archive. */
export function checkComposition(definition: Definition, report: Report): void {
  const { profiles } = definition
  checkVersion('the definition', definition.version, 'definition.yaml#version', report)
  if (profiles.length === 0) report('ProfileMissing', 'definition.yaml#profiles', 'there is no profile')
  checkProfiles(profiles, report)
  checkPacks(definition, report)
  checkFolders(definition, report)
}

function checkProfiles(profiles: readonly Profile[], report: Report): void {
  const uids = new Map<string, Profile>()
  let infrastructure: Profile | undefined
  for (const profile of profiles) {
    const { place, name, uid } = profile
    const earlier = uids.get(uid)
    if (earlier)
      report('ProfileTwice', `${place}#metadata.uid`, `has the uid of ${earlier.place}; remove one of them`)
    else uids.set(uid, profile)
    checkVersion(`profile ${printable(name)}`, profile.version, `${place}#spec.version`, report)
    if (!hasInfrastructure(profile)) continue
    if (infrastructure)
      report(
        'InfrastructureTwice',
        `${place}#spec.template`,
        `profiles ${printable(infrastructure.name)} and ${printable(name)} both contain infrastructure; keep one`,
      )
    infrastructure ??= profile
    checkLayers(profile, report)
  }
}

/** Whether a profile contains infrastructure, by its type or by its packs: some add-on profiles contain such a layer too. */
export function hasInfrastructure({ type, packs }: Profile): boolean {
  return type === 'cluster' || type === 'infra' || packs.some(({ layer }) => infrastructureLayers.has(layer))
}

function checkLayers({ place, packs }: Profile, report: Report): void {
  const counts = new Map<string, number>()
  packs.forEach(({ layer, name }, index) => {
    const count = (counts.get(layer) ?? 0) + 1
    counts.set(layer, count)
    if (count === 2 && requiredLayers.includes(layer))
      report(
        'LayerTwice',
        packPlace(place, index),
        `${printable(name)} is a second pack of layer ${layer}; keep one`,
      )
  })
  for (const layer of requiredLayers) {
    if (!counts.has(layer))
      report('LayerMissing', `${place}#spec.template.packs`, `has no pack of layer ${layer}; add one`)
  }
}

function checkPacks({ formatVersion, profiles, packs }: Definition, report: Report): void {
  const folders = new Map<string, string[]>()
  for (const { name, version: each } of packs) {
    const versions = folders.get(name)
    if (versions) versions.push(each)
    else folders.set(name, [each])
  }
  const suggest = createSuggest(50)
  const checkTwice = createTwiceCheck(report)
  for (const profile of profiles) {
    profile.packs.forEach((pack, index) => {
      const { name, tag, type } = pack
      const place = packPlace(profile.place, index)
      checkTwice(profile, pack, place)
      if (tag !== '') checkVersion(`pack ${printable(name)}`, tag, `${place}.tag`, report)
      const versions = folders.get(name) ?? []
      // A pack of type manifest consists only of the manifests in the profile.
      if (type === 'manifest' || versions.includes(tag)) return
      const present = printable(versions.join(', '))
      if (versions.length > 1 && (tag === '' || tag.endsWith('.x'))) {
        const reason = tag === '' ? 'has no tag' : `has the tag ${printable(tag)}`
        report('PackVersionMissing', place, `pack ${printable(name)} ${reason}; write one of ${present}`)
        return
      }
      const hint = versions.length > 0 ? `, which has ${present}` : suggest(name, folders.keys())
      // It is not documented where archives of the existing layout keep their packs. Charts come from a registry.
      const isElsewhere =
        formatVersion === 0 || (versions.length === 0 && (type === 'helm' || type === 'oci'))
      report(
        isElsewhere ? 'PackElsewhere' : 'PackMissing',
        place,
        `pack ${printable([name, tag].join(' ').trim())} is not in the archive${hint}`,
      )
    })
  }
}

const identityOf = ({ name, displayName }: ProfilePack) => `${name}\0${displayName}`

/** A profile may contain a pack more than once, under different display names, except in layers that a cluster has once. */
function createTwiceCheck(report: Report) {
  const seen = new Map<string, { readonly profile: Profile; readonly place: string }>()
  const identities = new Set<string>()
  return (profile: Profile, pack: ProfilePack, place: string): void => {
    const { name, layer } = pack
    const earlier = seen.get(name)
    const isSame = identities.has(identityOf(pack))
    identities.add(identityOf(pack))
    if (earlier === undefined) {
      seen.set(name, { profile, place })
      return
    }
    const mayRepeat = earlier.profile === profile && !requiredLayers.includes(layer)
    if (mayRepeat && !isSame) return
    const advice = mayRepeat ? 'keep one, or give each a display name of its own' : 'keep one'
    report('PackTwice', place, `pack ${printable(name)} is also ${earlier.place}; ${advice}`)
  }
}

function checkFolders({ profiles, packs }: Definition, report: Report): void {
  const used = new Set(profiles.flatMap((profile) => profile.packs.map(({ name, tag }) => `${name}\0${tag}`)))
  const seen = new Map<string, string>()
  for (const { place, name, version: each } of packs) {
    const key = `${name}\0${each}`
    const earlier = seen.get(key)
    if (earlier !== undefined) {
      report('PackTwice', place, `contains the same pack and version as ${earlier}; remove one of them`)
      continue
    }
    seen.set(key, place)
    checkVersion(`pack ${printable(name)}`, each, `${place}/pack.json#version`, report)
    if (!used.has(key))
      report('PackUnused', place, `no profile refers to pack ${printable(name)} ${printable(each)}`)
  }
}

function checkVersion(of: string, text: string, place: string, report: Report): void {
  if (!version.test(text))
    report('VersionInvalid', place, `${of} has the malformed version "${printable(text)}"`)
}

const packPlace = (place: string, index: number) => `${place}#spec.template.packs[${index}]`
