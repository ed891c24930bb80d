import { documentPath } from '../../base/program.ts'
import type { Static } from 'typebox'
import { checkShape } from './check-shape.ts'
import { DefinitionFile, formatVersion } from './format.ts'
import { parseYaml } from './parse.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import { refuse, showName } from '../../archive/refusal.ts'

/** The name of definition.yaml in an archive. */
export const definitionFile = 'definition.yaml'

/** The content of definition.yaml. */
export interface DefinitionHead extends Omit<Static<typeof DefinitionFile>, 'sha256'> {
  /** Name of a member -> SHA-256 of its content, hex. */
  readonly sums: ReadonlyMap<string, string>
}

const sumsKey = /^sha256: *\|-?[ \t]*$/m
const sumLine = /^ {2}([0-9a-f]{64}) {2}(\S.*)$/

/**
 * The text of definition.yaml, the same for the same content. The sums are one literal block, sorted by the bytes of the
 * names, so that a reader needs no memory for a tree of ten thousand nodes.
 */
export function formatDefinitionFile({
  formatVersion,
  name,
  version,
  description = '',
  profiles,
  sums,
}: DefinitionHead): string {
  // JSON strings are YAML strings. Written without a library, the bytes cannot change with the version of one.
  const quoted = (value: string) => JSON.stringify(value)
  const lines = [...sums]
    .map(([member, sum]) => ({ member: Buffer.from(member), line: `  ${sum}  ${member}\n` }))
    .sort((a, b) => Buffer.compare(a.member, b.member))
  return [
    `formatVersion: ${formatVersion}\nname: ${quoted(name)}\nversion: ${quoted(version)}\n`,
    `description: ${quoted(description)}\nprofiles:\n`,
    ...profiles.map(
      (profile) =>
        `  - uid: ${quoted(profile.uid)}\n    name: ${quoted(profile.name)}\n    version: ${quoted(profile.version)}\n`,
    ),
    'sha256: |\n',
    ...lines.map(({ line }) => line),
  ].join('')
}

/**
 * @param text of definition.yaml
 * @throws AppError DefinitionUnreadable or FormatVersion, with the place in the file
 */
export function parseDefinitionFile(text: string, limits: ArchiveLimits): DefinitionHead {
  const block = sumsKey.exec(text)
  if (block === null)
    throw unreadable('lacks its last key: sha256, a literal block (sha256: |) of the lines of sha256sum')
  const headEnd = block.index
  if (headEnd > limits.headBytes)
    throw unreadable(`has ${headEnd} characters before its sums; ${limits.headBytes} are allowed`)
  const sums = parseSums(text.slice(headEnd + block[0].length), text.slice(0, headEnd).split('\n').length)
  const value = parseHead(text.slice(0, headEnd))
  const version = (value as { formatVersion?: unknown } | null)?.formatVersion
  if (typeof version === 'number' && version > formatVersion)
    throw refuse(
      'FormatVersion',
      definitionFile,
      `is of format ${version}; this version of the software reads up to ${formatVersion}, so update this software, or build the archive with an older edgehostctl`,
    )
  const [problem, ...more] = checkShape(definitionFile, { ...(value as object), sha256: '' }, DefinitionFile)
  if (problem !== undefined) {
    const others = more.length === 0 ? '' : ` (and ${more.length} more)`
    throw unreadable(`${problem.place.split('#')[1] ?? 'as a whole'} ${problem.message}${others}`)
  }
  return { ...(value as Omit<DefinitionHead, 'sums'>), sums }
}

function parseHead(text: string): unknown {
  const { value, problems } = parseYaml(definitionFile, text)
  const [problem] = problems
  if (problem !== undefined) {
    const where = problem.place.slice(definitionFile.length).replace(/^[:#]/, '')
    throw unreadable(firstLine(where === '' ? problem.message : `${where} ${problem.message}`))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unreadable(`is not a YAML mapping; see ${documentPath('definition-format.md')}`)
  return value
}

function parseSums(block: string, firstNumber: number): Map<string, string> {
  const sums = new Map<string, string>()
  for (const [index, line] of block.split('\n').entries()) {
    if (line === '') continue
    const [, sum, name] = sumLine.exec(line) ?? []
    const where = `line ${firstNumber + index}`
    if (sum === undefined || name === undefined)
      throw unreadable(
        `${where} is not a sum: two spaces, 64 hexadecimal digits, two spaces, a name; nothing may follow the sums`,
      )
    if (sums.has(name)) throw unreadable(`${where} names ${showName(name)} again`)
    sums.set(name, sum)
  }
  return sums
}

const firstLine = (text: string) => showName(text.split('\n')[0] ?? '')
const unreadable = (what: string) => refuse('DefinitionUnreadable', definitionFile, `cannot be read: ${what}`)
