import { isUtf8 } from 'node:buffer'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Problem } from '../definition.ts'
import { pathPart } from './format.ts'
import type { ArchiveLimits } from './limits.ts'
import { createMemberNames } from './member-names.ts'
import { parsePackFile } from './read-pack.ts'
import { readProfile } from './read-profile.ts'

/** A file as it will be packed. */
export interface PlannedMember {
  readonly name: string
  readonly sizeBytes: number
  /** Where it lies, or what it is. */
  readonly from: string | Buffer
}

/** What an archive will hold. */
export interface BuildPlan {
  readonly profiles: readonly { readonly uid: string; readonly name: string; readonly version: string }[]
  /** Of the profile that names the definition when nobody else does. */
  readonly title: { readonly name: string; readonly version: string; readonly description: string }
  /** By the bytes of their names; definition.yaml is not among them. */
  readonly members: readonly PlannedMember[]
  readonly problems: readonly Problem[]
}

export interface PlanOptions {
  /** Files, a profile each, as the platform exports them. */
  readonly profiles: readonly string[]
  /** Folders, a pack each, in the public layout. */
  readonly packs: readonly string[]
  readonly limits: ArchiveLimits
}

// Of tools, never of a pack.
const leftOut = new Set(['.git', '.svn', '.hg', '.DS_Store'])

/**
 * Looks at what is to be packed. Every problem has the place where the author finds it: paths as they were given.
 * Synchronous as all of the authoring: nobody else waits for that process, and ten thousand small files take a
 * fifth of the time.
 */
export function planBuild({ profiles: files, packs: folders, limits }: PlanOptions): BuildPlan {
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
    members.push({ name, from, sizeBytes })
  }

  const profiles = files.flatMap((file) => {
    const content = readText(file, report)
    if (content === undefined) return []
    const text = { place: file, content: textOf(content) }
    const { profile, exported, problems: found } = readProfile(text, undefined)
    problems.push(...found)
    if (profile === undefined) return []
    const folder = `profiles/${profile.uid}`
    add(`${folder}/profile.json`, content, content.length, file)
    const list = { variables: exported?.spec.variables ?? [] }
    const variables = Buffer.from(`${JSON.stringify(list, null, 2)}\n`)
    add(`${folder}/variables.json`, variables, variables.length, file)
    return [profile]
  })

  for (const folder of folders) {
    const place = join(folder, 'pack.json')
    const content = readText(place, report)
    if (content === undefined) continue
    const { file, problems: found } = parsePackFile({ place, content: textOf(content) })
    problems.push(...found)
    if (file === undefined) continue
    const { name, version } = file
    if (!pathPart.test(name) || !pathPart.test(version)) {
      report(
        place,
        'FieldInvalid',
        `has the name ${name} and the version ${version}; both must match ${pathPart.source}`,
      )
      continue
    }
    for (const [path, size] of listFolder(folder, report))
      add(`packs/${name}-${version}/${path}`, resolve(folder, path), size, join(folder, path))
  }
  if (profiles.length === 0 && problems.length === 0)
    report('--profile', 'ProfileMissing', 'is missing: a definition holds at least one profile')

  const sorted = profiles.sort((a, b) => (a.uid < b.uid ? -1 : 1))
  const main = sorted.find(({ type }) => type !== 'add-on') ?? sorted[0]
  return {
    profiles: sorted.map(({ uid, name, version }) => ({ uid, name, version })),
    title: {
      name: main?.name ?? '',
      version: main?.version || '0.0.0',
      description: main?.description ?? '',
    },
    members: sortByName(members),
    problems,
  }
}

/** By bytes, which no locale changes. */
function sortByName(members: readonly PlannedMember[]): PlannedMember[] {
  return members
    .map((member) => ({ member, key: Buffer.from(member.name) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ member }) => member)
}

type Report = (place: string, code: string, message: string) => void

function readText(file: string, report: Report): Buffer | undefined {
  try {
    const content = readFileSync(file)
    if (isUtf8(content)) return content
    report(file, 'NotUtf8', 'is not UTF-8; save it as UTF-8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    report(file, 'FileMissing', `cannot be read (${code}); give the file or folder as it was exported`)
  }
  return undefined
}

/** Without the byte order mark of an editor, as archives are read. */
const textOf = (content: Buffer) => new TextDecoder().decode(content)

/** Regular files below a folder and their sizes; everything else is reported. */
function* listFolder(folder: string, report: Report, below = ''): Generator<[path: string, size: number]> {
  for (const name of readdirSync(join(folder, below))) {
    if (leftOut.has(name)) continue
    const path = below === '' ? name : `${below}/${name}`
    const stat = lstatSync(join(folder, path))
    if (stat.isDirectory()) yield* listFolder(folder, report, path)
    else if (stat.isFile()) yield [path, stat.size]
    else
      report(
        join(folder, path),
        'MemberKind',
        `is ${stat.isSymbolicLink() ? 'a symbolic link' : 'no regular file'}; a definition holds regular files only`,
      )
  }
}
