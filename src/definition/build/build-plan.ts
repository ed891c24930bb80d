import { isUtf8 } from 'node:buffer'
import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isNeverOfAPack } from '../../base/never-of-a-pack.ts'
import { FileRefused, readRegularFileSync } from '../../system/regular-file.ts'
import type { Problem } from '../definition.ts'
import { pathPart, pathPartForm } from '../format/format.ts'
import { defaultLimits, type ArchiveLimits } from '../../archive/limits.ts'
import { createMemberNames } from '../../archive/member-names.ts'
import { applyPresets, type PresetFolder } from './presets.ts'
import { parsePackFile, parsePresets } from '../read/read-pack.ts'
import { parseExport, type ExportedProfile } from '../read/read-profile.ts'

/** A file as it will be packed. */
export interface PlannedMember {
  readonly name: string
  readonly sizeBytes: number
  /** Path of the file, or its content. */
  readonly from: string | Buffer
  /** Its place for the author. */
  readonly place: string
}

/** The contents of an archive that will be built. */
export interface BuildPlan {
  readonly profiles: readonly { readonly uid: string; readonly name: string; readonly version: string }[]
  /** Number of packs. */
  readonly packs: number
  /** Fields of the profile that names the definition, unless the command line does. `place`: its file. */
  readonly title: {
    readonly name: string
    readonly version: string
    readonly description: string
    readonly place: string
  }
  /** Sorted by the bytes of their names; definition.yaml is not among them. */
  readonly members: readonly PlannedMember[]
  /** Errors; warnings come from the packed files. */
  readonly problems: readonly Problem[]
}

const isError = ({ severity }: Problem) => severity === 'error'

export interface PlanOptions {
  /** Files, each a profile as the platform exports it, JSON or YAML. */
  readonly profiles: readonly string[]
  /** Folders, each a pack in the public layout or a folder of packs. */
  readonly packs: readonly string[]
  /** `PACK:NAME` each: a preset of a pack, applied to the values that the profiles give it. */
  readonly presets?: readonly string[]
  readonly limits: ArchiveLimits
}

/**
 * Reads the files to be packed. Every problem has the place where the author finds it: paths as they were given.
 * It is synchronous, since no other work waits in that process and ten thousand small files then take a fifth of the time.
 */
export function planBuild({ profiles: files, packs: folders, presets = [], limits }: PlanOptions): BuildPlan {
  const problems: Problem[] = []
  const members: PlannedMember[] = []
  const names = createMemberNames(limits)
  const report = (place: string, code: string, message: string) =>
    problems.push({ code, severity: 'error', place, message })

  const add = (name: string, from: string | Buffer, sizeBytes: number, place: string) => {
    try {
      names.admit(name, 'file')
    } catch (error) {
      report(place, 'MemberName', (error as Error).message)
      return
    }
    if (sizeBytes > limits.memberBytes)
      report(place, 'MemberTooLarge', `has ${sizeBytes} bytes; ${limits.memberBytes} are allowed`)
    members.push({ name, from, sizeBytes, place })
  }

  const uids = new Map<string, string>()
  const exports = new Map<string, ExportedProfile>()
  const profiles = files.flatMap((file) => {
    const content = readText(file, report)
    if (content === undefined) return []
    const text = { place: file, content: textOf(content) }
    const { profile, exported, isYaml, problems: found } = parseExport(text)
    problems.push(...found.filter(isError))
    if (profile === undefined) return []
    const earlier = uids.get(profile.uid)
    if (earlier !== undefined) {
      report(file, 'ProfileTwice', `is the same profile as ${earlier}: both have the uid ${profile.uid}`)
      return []
    }
    uids.set(profile.uid, file)
    const folder = `profiles/${profile.uid}`
    if (exported) exports.set(`${folder}/profile.json`, exported)
    const json = isYaml ? Buffer.from(`${JSON.stringify(exported, null, 2)}\n`) : content
    add(`${folder}/profile.json`, json, json.length, file)
    const list = { variables: exported?.spec.variables ?? [] }
    const variables = Buffer.from(`${JSON.stringify(list, null, 2)}\n`)
    add(`${folder}/variables.json`, variables, variables.length, file)
    return [profile]
  })

  const packs = new Map<string, string>()
  const presetFolders: PresetFolder[] = []
  for (const folder of folders.flatMap((given) => findPacks(given, report))) {
    const place = join(folder, 'pack.json')
    const content = readText(place, report)
    if (content === undefined) continue
    const { file, problems: found } = parsePackFile({ place, content: textOf(content) })
    problems.push(...found.filter(isError))
    if (file === undefined) continue
    const { name, version } = file
    if (!pathPart.test(name) || !pathPart.test(version)) {
      report(
        place,
        'FieldInvalid',
        `has the name ${name} and the version ${version}; each must be ${pathPartForm}`,
      )
      continue
    }
    const earlier = packs.get(`${name}-${version}`)
    if (earlier !== undefined) {
      report(folder, 'PackTwice', `contains the same pack and version as ${earlier}; leave one of them out`)
      continue
    }
    packs.set(`${name}-${version}`, folder)
    if (presets.length > 0) presetFolders.push(readPresetFolder(folder, { name, version }, report))
    for (const [path, size] of listFolder(folder, report))
      add(`packs/${name}-${version}/${path}`, resolve(folder, path), size, join(folder, path))
  }
  if (profiles.length === 0 && problems.length === 0)
    report('--profile', 'ProfileMissing', 'is missing: a definition has at least one profile')

  if (presets.length > 0) {
    applyPresets({ requested: presets, folders: presetFolders, profiles: [...exports.values()], report })
    members.forEach((member, index) => {
      const exported = exports.get(member.name)
      if (!exported) return
      const from = Buffer.from(`${JSON.stringify(exported, null, 2)}\n`)
      members[index] = { ...member, from, sizeBytes: from.length }
    })
  }

  const sorted = profiles.sort((a, b) => (a.uid < b.uid ? -1 : 1))
  const main = sorted.find(({ type }) => type === 'cluster' || type === 'infra') ?? sorted[0]
  return {
    packs: packs.size,
    profiles: sorted.map(({ uid, name, version }) => ({ uid, name, version })),
    title: {
      name: main?.name ?? '',
      version: main?.version ?? '',
      description: main?.description ?? '',
      place: main?.place ?? '',
    },
    members: sortByName(members),
    problems,
  }
}

/** By bytes, so that the locale does not matter. */
function sortByName(members: readonly PlannedMember[]): PlannedMember[] {
  return members
    .map((member) => ({ member, key: Buffer.from(member.name) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ member }) => member)
}

// Public repositories keep packs in folders by name: packs/<name>/<name>-<version>.
const packDepth = 3

/** The packs of a folder: the folder itself if it has a pack.json, otherwise those below it. */
function findPacks(given: string, report: Report): string[] {
  const search = (folder: string, depth: number): string[] => {
    if (existsSync(join(folder, 'pack.json'))) return [folder]
    return readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !isNeverOfAPack(name))
      .flatMap((entry) => {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) return depth < packDepth ? search(path, depth + 1) : []
        // A link to a pack is followed; other links could form a loop.
        return entry.isSymbolicLink() && existsSync(join(path, 'pack.json')) ? [path] : []
      })
      .sort()
  }
  try {
    const found = search(given, 1)
    if (found.length === 0)
      report(given, 'PackMissing', 'contains no pack: neither it nor a folder below it has a pack.json')
    return found
  } catch (error) {
    const { code = '', path = given } = error as NodeJS.ErrnoException
    report(path, 'FileMissing', `cannot be read (${code}); give the folder of a pack, or a folder of packs`)
    return []
  }
}

type Report = (place: string, code: string, message: string) => void

function readText(file: string, report: Report): Buffer | undefined {
  try {
    const content = readRegularFileSync(file, defaultLimits.allTextBytes).bytes
    if (isUtf8(content)) return content
    report(file, 'NotUtf8', 'is not UTF-8; save it as UTF-8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const reason = error instanceof FileRefused ? error.reason : `cannot be read (${code})`
    report(file, 'FileMissing', `${reason}; give the exported file or folder`)
  }
  return undefined
}

/** The part of a pack that presets need. */
function readPresetFolder(
  folder: string,
  pack: { name: string; version: string },
  report: Report,
): PresetFolder {
  const textIn = (name: string) => {
    const place = join(folder, name)
    const content = existsSync(place) ? readText(place, report) : undefined
    return content && { place, content: textOf(content) }
  }
  const text = textIn('presets.yaml')
  const { presets, problems } = text ? parsePresets(text) : { presets: [], problems: [] }
  for (const { place, code, message } of problems) report(place, code, message)
  return { ...pack, values: textIn('values.yaml')?.content ?? '', presets }
}

/** Without the byte order mark that an editor may write; the reader of archives drops it too. */
const textOf = (content: Buffer) => new TextDecoder().decode(content)

/** Regular files below a folder and their sizes; everything else is reported. */
function* listFolder(folder: string, report: Report, below = ''): Generator<[path: string, size: number]> {
  for (const name of readdirSync(join(folder, below))) {
    if (isNeverOfAPack(name)) continue
    const path = below === '' ? name : `${below}/${name}`
    const stat = lstatSync(join(folder, path))
    if (stat.isDirectory()) yield* listFolder(folder, report, path)
    else if (stat.isFile()) yield [path, stat.size]
    else
      report(
        join(folder, path),
        'MemberKind',
        `is ${stat.isSymbolicLink() ? 'a symbolic link' : 'not a regular file'}; a definition contains regular files only`,
      )
  }
}
