import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { definitionFile, parseDefinitionFile, type DefinitionHead } from '../format/definition-file.ts'
import { type Member, extractArchive, type Extracted, type ExtractOptions } from '../../archive/extract.ts'
import { type ArchiveLimits, withDefaults } from '../../archive/limits.ts'
import { refuse } from '../../archive/refusal.ts'
import type { Definition, Pack, Problem, Profile } from '../definition.ts'
import { pathPart } from '../format/format.ts'
import { readPack } from './read-pack.ts'
import { parseProfile, type ReadProfile, type Text, resolvePacks } from './read-profile.ts'

/** Folder of the profiles in archives from before this format. */
const existingProfiles = 'spc/app/profiles'

/**
 * Compares the unpacked files with the sums of definition.yaml.
 * @returns the content of definition.yaml; undefined for archives of the existing layout, which have no such file
 * @throws AppError if a file is missing, unlisted or different; the system's errors as they are
 */
async function verifySums(
  folder: string,
  members: ReadonlyMap<string, Member>,
  limits: ArchiveLimits,
): Promise<DefinitionHead | undefined> {
  const own = members.get(definitionFile)
  if (own === undefined) {
    if ([...members.keys()].some((path) => path.startsWith(`${existingProfiles}/`))) return undefined
    throw refuse(
      'DefinitionMissing',
      undefined,
      `contains neither ${definitionFile} nor ${existingProfiles}; check that it is a definition`,
    )
  }
  const head = parseDefinitionFile(await readHead(folder, own, limits), limits)
  for (const [path, { sha256 }] of members) {
    if (path === definitionFile) continue
    const sum = head.sums.get(path)
    if (sum === undefined) throw refuse('MemberUnlisted', path, `is not in the sums of ${definitionFile}`)
    if (sum !== sha256)
      throw refuse(
        'SumDiffers',
        path,
        'is not the file that was packed: its SHA-256 differs; copy the archive again',
      )
  }
  for (const path of head.sums.keys())
    if (!members.has(path))
      throw refuse('MemberMissing', path, `is in the sums of ${definitionFile}, not in the archive`)
  return head
}

async function readHead(folder: string, { sizeBytes }: Member, limits: ArchiveLimits): Promise<string> {
  if (sizeBytes > limits.textBytes)
    throw refuse('MemberTooLarge', definitionFile, `has ${sizeBytes} bytes; ${limits.textBytes} are allowed`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(join(folder, definitionFile)))
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
      ? refuse('DefinitionUnreadable', definitionFile, 'cannot be read: it is not UTF-8', error)
      : error
  }
}

/** A definition that is unpacked in a folder, all its sums verified. */
export interface ExtractedDefinition extends Extracted {
  /** The content of definition.yaml; undefined for archives of the existing layout, which have no such file. */
  readonly head: DefinitionHead | undefined
}

/**
 * Unpacks a definition archive and verifies the sum of every member. After a failure the folder is removed.
 * @throws the errors of `extractArchive` and `verifySums`
 */
export async function extractDefinition(
  options: Omit<ExtractOptions, 'index'>,
): Promise<ExtractedDefinition> {
  const { folder, limits } = options
  const { members } = await extractArchive({ ...options, index: definitionFile })
  try {
    return { folder, members, head: await verifySums(folder, members, withDefaults(limits)) }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** A definition, and the problems of the form of its files. */
export interface ReadDefinition {
  readonly definition: Definition
  readonly problems: readonly Problem[]
}

/** The files of a definition: of an unpacked archive, or those from which an archive will be built. */
type DefinitionFiles = Pick<ExtractedDefinition, 'head'> & {
  /** By their names in the archive. */
  readonly members: ReadonlyMap<string, { readonly sizeBytes: number; readonly isKept?: boolean }>
} & (Pick<ExtractedDefinition, 'folder'> | { readonly content: (name: string) => Promise<Buffer> })

/**
 * Reads the definition of an unpacked archive. It reports only problems of the form: a file does not parse, or a field is
 * missing or of the wrong type. A profile, pack or variable with such a problem is left out of the definition.
 * @throws AppError if the texts are too large in total; the system's errors as they are
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
    const known = problems.length
    const found = await findProfileFile(inside, (path) => read(`${place}/${path}`))
    if (found === undefined) {
      // One that is there and cannot be read has its own problem.
      if (problems.length === known)
        problems.push(
          problem('MemberMissing', `${place}/profile.json`, 'is missing; put the exported profile there'),
        )
      continue
    }
    const variables = inside.includes('variables.json') ? await read(`${place}/variables.json`) : undefined
    const uid = isExisting ? uidOfFolder(place) : undefined
    const result = parseProfile(found, { variables, uid })
    problems.push(...result.problems)
    if (result.profile === undefined) continue
    problems.push(...checkPlace(result.profile, place))
    profiles.push(result.profile)
  }

  const packs: Pack[] = []
  for (const [place, inside] of foldersIn(files, `${root}packs/`)) {
    if (!inside.includes('pack.json')) {
      problems.push(
        problem('MemberMissing', `${place}/pack.json`, 'is missing, so this folder is not a pack'),
      )
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
        `has no ${definitionFile} beside it, so the archive cannot be verified; build it again with edgehostctl`,
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

/** The folders below a prefix, with the paths of the files in each. */
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

/** profile.json; or, since the existing layout documents no file name, the only other JSON file in the folder. */
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

/** Compares the profiles that definition.yaml lists with those in the archive. */
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
      // A profile that is present but malformed has its own problems.
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

/** Reads texts of the archive, up to the limits of one file and of all together. */
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
    // A text was not unpacked if other files had already used up the bytes that may be written.
    if (total > limits.allTextBytes || !isKept)
      throw refuse(
        'TooLarge',
        place,
        `is where the files exceed the ${limits.allTextBytes} bytes that are allowed for texts; every file of a pack counts that is not itself an archive`,
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
