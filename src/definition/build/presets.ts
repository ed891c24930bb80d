import type { Static } from 'typebox'
import type { Preset } from '../definition.ts'
import { applyPreset } from './apply-preset.ts'
import type { ProfileFile } from '../format/format.ts'

/** The part of a pack folder that presets need. */
export interface PresetFolder {
  readonly name: string
  readonly version: string
  readonly values: string
  readonly presets: readonly Preset[]
}

/** The presets to apply, and the profiles and packs that they belong to. */
export interface PresetOptions {
  /** `PACK:NAME` each. */
  readonly requested: readonly string[]
  readonly folders: readonly PresetFolder[]
  /** The values of their packs are replaced when a preset is applied. */
  readonly profiles: readonly Static<typeof ProfileFile>[]
  readonly report: (place: string, code: string, message: string) => void
}

/** Applies presets to the values that profiles give their packs or, if a profile gives none, to those of the pack folder. */
export function applyPresets({ requested, folders, profiles, report }: PresetOptions): void {
  const groups = new Map<string, string>()
  for (const argument of requested) {
    const colon = argument.indexOf(':')
    const [name, wanted] = [argument.slice(0, colon), argument.slice(colon + 1)]
    const say = (message: string) => report(`--preset ${argument}`, 'PresetInvalid', message)
    if (colon < 1) {
      say('must be written as PACK:NAME')
      continue
    }
    const entries = profiles.flatMap(({ spec }) => spec.template.packs.filter((pack) => pack.name === name))
    const [first, ...more] = folders.filter((folder) => folder.name === name)
    if (entries.length === 0 || first === undefined) {
      say(
        first === undefined
          ? `names a pack without a folder; give it with --pack`
          : 'names a pack that no profile contains',
      )
      continue
    }
    for (const entry of entries) {
      const folder = [first, ...more].find(({ version }) => version === entry.tag) ?? first
      const preset = folder.presets.find((each) => each.name === wanted)
      if (preset === undefined) {
        const known = folder.presets.map((each) => each.name)
        say(
          `is not a preset of ${name} ${folder.version}, which has ${known.length > 0 ? known.join(', ') : 'no presets'}`,
        )
        break
      }
      const group = preset.group === '' ? undefined : groups.get(`${name}\0${preset.group}`)
      if (group !== undefined && group !== wanted) {
        say(`is in the same group (${preset.group}) as ${group}; choose one of them`)
        break
      }
      groups.set(`${name}\0${preset.group}`, wanted)
      const values = (entry.values ?? '').trim() === '' ? folder.values : (entry.values ?? '')
      try {
        entry.values = applyPreset(values, preset)
      } catch (error) {
        say((error as Error).message)
        break
      }
    }
  }
}
