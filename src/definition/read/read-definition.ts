import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Definition, Pack, Problem, Profile } from '../definition.ts'
import { definitionFile, type DefinitionHead } from '../format/definition-file.ts'
import type { ExtractedDefinition } from './extract-definition.ts'
import { pathPart } from '../format/format.ts'
import { withDefaults, type ArchiveLimits } from '../../archive/limits.ts'
import { readPack } from './read-pack.ts'
import { readProfile, type ReadProfile, type Text } from './read-profile.ts'
import { refuse } from '../../archive/refusal.ts'
import { resolvePacks } from './resolve-packs.ts'
import { existingProfiles } from './verify-sums.ts'

/** A definition, and what is wrong with the shape of its files. */
export interface ReadDefinition {
  readonly definition: Definition
  readonly problems: readonly Problem[]
}

/** Where the files of a definition are: in an archive that was unpacked, or where one is to be built from. */
export type DefinitionFiles = Pick<ExtractedDefinition, 'head'> & {
  /** By their names in the archive. */
  readonly members: ReadonlyMap<string, { readonly sizeBytes: number; readonly isKept?: boolean }>
} & (Pick<ExtractedDefinition, 'folder'> | { readonly content: (name: string) => Promise<Buffer> })

/**
 * The definition in an archive that was unpacked. Problems are of the form alone: what does not parse, what is missing
 * or of the wrong type. What they belong to is left out of the definition.
 * @throws AppError where the texts are too large in all; the system's errors as they are
 */
export async function readDefinition(
  extracted: DefinitionFiles,
  given?: Partial<ArchiveLimits>,
): Promise<ReadDefinition> {
  const limits = withDefaults(given)
  const { head } = extracted
  const files = [...extracted.members.keys()].sort()
  const problems: Problem[] = []
  const read = createReader(extracted, limits, problems)
  const isExisting = head === undefined
  const root = isExisting ? 'spc/app/' : ''

  const profiles: ReadProfile[] = []
  for (const [place, inside] of foldersIn(files, isExisting ? `${existingProfiles}/` : 'profiles/')) {
    const found = await findProfileFile(inside, (path) => read(`${place}/${path}`))
    if (found === undefined) {
      problems.push(
        problem('MemberMissing', `${place}/profile.json`, 'is missing: the profile as it was exported'),
      )
      continue
    }
    const variables = inside.includes('variables.json') ? await read(`${place}/variables.json`) : undefined
    const uid = isExisting ? uidOfFolder(place) : undefined
    const result = readProfile(found, { variables, uid })
    problems.push(...result.problems)
    if (result.profile === undefined) continue
    problems.push(...checkPlace(result.profile, place))
    profiles.push(result.profile)
  }

  const packs: Pack[] = []
  for (const [place, inside] of foldersIn(files, `${root}packs/`)) {
    if (!inside.includes('pack.json')) {
      problems.push(problem('MemberMissing', `${place}/pack.json`, 'is missing, so this folder is no pack'))
      continue
    }
    const result = await readPack({ place, files: inside, read: (path) => read(`${place}/${path}`) })
    problems.push(...result.problems)
    if (result.pack !== undefined) packs.push(result.pack)
  }

  if (head === undefined)
    problems.push({
      ...problem(
        'SumsMissing',
        existingProfiles,
        `has no ${definitionFile} beside it, so nothing says whether the archive is whole; build it anew to know`,
      ),
      severity: 'warning',
    })
  else problems.push(...checkListing(head, profiles))
  const [first] = profiles
  return {
    definition: {
      formatVersion: head?.formatVersion ?? 0,
      name: head?.name ?? first?.name ?? '',
      version: head?.version ?? first?.version ?? '',
      description: head?.description ?? first?.description ?? '',
      profiles: resolvePacks(profiles, packs),
      packs,
    },
    problems,
  }
}

const problem = (code: string, place: string, message: string): Problem => ({
  code,
  severity: 'error',
  place,
  message,
})

/** Folders below a prefix, with the files in each. */
function foldersIn(files: readonly string[], prefix: string): [place: string, inside: string[]][] {
  const found = new Map<string, string[]>()
  for (const path of files) {
    if (!path.startsWith(prefix)) continue
    const slash = path.indexOf('/', prefix.length)
    if (slash < 0) continue
    const place = path.slice(0, slash)
    const inside = found.get(place) ?? []
    if (inside.length === 0) found.set(place, inside)
    inside.push(path.slice(slash + 1))
  }
  return [...found]
}

/** profile.json; in existing archives, whose name for it is not documented, the one JSON file that is a profile. */
async function findProfileFile(
  inside: readonly string[],
  read: (path: string) => Promise<Text | undefined>,
): Promise<Text | undefined> {
  if (inside.includes('profile.json')) return read('profile.json')
  const others = inside.filter((path) => /^[^/]+\.json$/.test(path) && path !== 'variables.json')
  return others.length === 1 && others[0] !== undefined ? read(others[0]) : undefined
}

/** In archives of the existing layout the platform named the folder by the uid. */
function uidOfFolder(place: string): string | undefined {
  const name = place.split('/').at(-1) ?? ''
  return pathPart.test(name) ? name : undefined
}

function checkPlace({ place, uid }: Profile, folder: string): Problem[] {
  const named = folder.split('/').at(-1) ?? ''
  if (named === uid) return []
  return [problem('FieldInvalid', `${place}#metadata.uid`, `is ${uid}; the folder says ${named}`)]
}

/** Profiles that definition.yaml names, against those that are there. */
function checkListing(head: DefinitionHead, profiles: readonly Profile[]): Problem[] {
  const listed = head.profiles.map(({ uid }) => uid)
  const present = new Set(profiles.map(({ uid }) => uid))
  const folders = new Set(
    [...head.sums.keys()].flatMap((path) => /^profiles\/([^/]+)\//.exec(path)?.[1] ?? []),
  )
  return [
    ...listed.flatMap((uid, index) => {
      const place = `${definitionFile}#profiles[${index}].uid`
      if (listed.indexOf(uid) !== index) return [problem('ProfileTwice', place, `names ${uid} again`)]
      // One that is there and wrong has its own problems.
      return present.has(uid) || folders.has(uid)
        ? []
        : [problem('MemberMissing', place, `names ${uid}; there is no folder profiles/${uid}`)]
    }),
    ...[...folders]
      .filter((uid) => !listed.includes(uid))
      .map((uid) =>
        problem('ProfileUnlisted', `profiles/${uid}`, `is not among the profiles of ${definitionFile}`),
      ),
  ]
}

/** Reads text of the archive, so much of one file and so much of all. */
function createReader(files: DefinitionFiles, limits: ArchiveLimits, problems: Problem[]) {
  const { members } = files
  const contentOf = 'folder' in files ? (name: string) => readFile(join(files.folder, name)) : files.content
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let total = 0
  return async (place: string): Promise<Text | undefined> => {
    const { sizeBytes: size = 0, isKept = true } = members.get(place) ?? {}
    if (size > limits.textBytes) {
      problems.push(
        problem('MemberTooLarge', place, `has ${size} bytes; ${limits.textBytes} are allowed for text`),
      )
      return undefined
    }
    total += size
    // It is not there where files that are no texts had used up what may be written.
    if (total > limits.allTextBytes || !isKept)
      throw refuse(
        'TooLarge',
        place,
        `is where the texts exceed the ${limits.allTextBytes} bytes that are allowed, the other files of packs that are not packed included`,
      )
    try {
      return { place, content: decoder.decode(await contentOf(place)) }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      problems.push(problem('NotUtf8', place, 'is not UTF-8; save it as UTF-8'))
      return undefined
    }
  }
}
