import { readFile } from 'node:fs/promises'
import { AppError } from '../../errors/app-error.ts'
import type { Definition, Problem } from '../definition.ts'
import { checkDefinition } from '../rules/check.ts'
import { checkComposition } from '../rules/composition.ts'
import type { BuildPlan } from './build-plan.ts'
import { checkShape } from '../format/check-shape.ts'
import { definitionFile, formatDefinitionFile, parseDefinitionFile } from '../format/definition-file.ts'
import { DefinitionFile, formatVersion } from '../format/format.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import { readDefinition } from '../read/read-definition.ts'

export interface PlanCheck {
  readonly plan: BuildPlan
  /** From the command line, in place of the name of a profile. */
  readonly name?: string | undefined
  readonly version?: string | undefined
  readonly limits: ArchiveLimits
}

/** A definition as an archive of its plan will have it. */
export interface PlannedDefinition {
  /** None where the texts are too large in total. */
  readonly definition?: Definition
  /** Errors for which nothing is packed. */
  readonly problems: Problem[]
  /** All other problems that `definition validate` will find in the archive, at the places of the author. */
  readonly contentProblems: () => Problem[]
}

/**
 * Checks before packing what the reader of archives would refuse, with the code of the reader: the fields of
 * definition.yaml, the form of every text, versions, and the total size. Every problem has the place where the author
 * finds it. Also the definition that was read for it.
 */
export async function readPlanned(options: PlanCheck): Promise<PlannedDefinition> {
  const { plan, limits } = options
  const head = headOf(options)
  const problems = [
    ...checkShape(definitionFile, { ...head, sha256: '' }, DefinitionFile),
    ...checkHead(head, limits),
  ]
  const content: ReadPlan = await readPlan(plan, head, limits).catch(asProblem)
  problems.push(
    ...content.problems.filter(({ severity }) => severity === 'error'),
    ...checkSize(plan, limits),
  )
  if (content.definition) problems.push(...checkVersions({ ...content.definition, version: head.version }))
  const toAuthor = createPlaces(options)
  // If the version comes from a profile, the problem of that profile is reported instead.
  const reported =
    options.version === undefined
      ? problems.filter(({ place }) => place !== `${definitionFile}#version`)
      : problems
  return {
    ...(content.definition ? { definition: content.definition } : {}),
    contentProblems: () =>
      [
        ...content.problems.filter(({ severity }) => severity !== 'error'),
        ...(content.definition ? checkDefinition(content.definition) : []),
      ].map((problem) => ({ ...problem, place: toAuthor(problem.place) })),
    problems: reported.map((problem) => ({ ...problem, place: toAuthor(problem.place) })),
  }
}

interface ReadPlan {
  readonly definition?: Definition
  readonly problems: readonly Problem[]
}

type Head = ReturnType<typeof headOf>

const headOf = ({ plan: { title, profiles }, name, version }: PlanCheck) => ({
  formatVersion,
  name: name ?? title.name,
  version: version ?? title.version,
  description: title.description,
  profiles: profiles.map((each) => ({ uid: each.uid, name: each.name, version: each.version })),
})

/** If every field is valid, the file as a whole may still be too long or not valid YAML. */
function checkHead(head: Head, limits: ArchiveLimits): Problem[] {
  if (checkShape(definitionFile, { ...head, sha256: '' }, DefinitionFile).length > 0) return []
  try {
    parseDefinitionFile(formatDefinitionFile({ ...head, sums: new Map() }), limits)
    return []
  } catch (error) {
    return [errorAt(`${definitionFile}#profiles`, 'FieldInvalid', (error as Error).message)]
  }
}

async function readPlan({ members }: BuildPlan, head: Head, limits: ArchiveLimits) {
  const byName = new Map(members.map((member) => [member.name, member]))
  return readDefinition(
    {
      members: byName,
      head: { ...head, sums: new Map(members.map(({ name }) => [name, ''])) },
      content: async (name) => {
        const from = byName.get(name)?.from ?? ''
        return typeof from === 'string' ? readFile(from) : from
      },
    },
    limits,
  )
}

/** `readDefinition` throws if the texts are too large in total. */
function asProblem(error: unknown): ReadPlan {
  if (!(error instanceof AppError)) throw error
  const { member } = error.details ?? {}
  const place = typeof member === 'string' ? member : '--pack'
  return { problems: [errorAt(place, 'TooLarge', error.message)] }
}

/** Versions that are missing or malformed, for example of a profile without one. */
function checkVersions(definition: Definition): Problem[] {
  const problems: Problem[] = []
  checkComposition(definition, (code, place, message) => {
    if (code === 'VersionInvalid') problems.push(errorAt(place, code, message))
  })
  return problems
}

function checkSize({ members }: BuildPlan, { unpackedBytes }: ArchiveLimits): Problem[] {
  const total = members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  if (total <= unpackedBytes) return []
  return [errorAt('--pack', 'TooLarge', `has ${total} bytes in total; ${unpackedBytes} are allowed`)]
}

const errorAt = (place: string, code: string, message: string): Problem => ({
  code,
  severity: 'error',
  place,
  message,
})

/** Maps places in the archive to the files and options that the author gave. */
function createPlaces({ plan, name, version }: PlanCheck): (place: string) => string {
  const members = new Map(plan.members.map((member) => [member.name, member.place]))
  const title = (field: string) => `${plan.title.place}#${field}`
  const heads = new Map([
    ['name', name === undefined ? title('metadata.name') : '--name'],
    ['version', version === undefined ? title('spec.version') : '--release'],
    ['description', title('metadata.description')],
    ['profiles', '--profile'],
  ])
  return (place) => {
    const [, file = '', rest = ''] = /^([^#]*?)((?:#.*|:\d+:\d+)?)$/s.exec(place) ?? []
    if (file === definitionFile) {
      const [, field = '', item = ''] = /^#([a-z0-9A-Z]+)(.*)$/.exec(rest) ?? []
      return `${heads.get(field) ?? place}${field === 'profiles' ? item : ''}`
    }
    // The member of the variables is made from `spec` of an export.
    const field = file.startsWith('profiles/') ? rest.replace(/^#variables\b/, '#spec.variables') : rest
    return `${members.get(file) ?? file}${field}`
  }
}
