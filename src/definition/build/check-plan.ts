import { readFile } from 'node:fs/promises'
import { AppError } from '../../errors/app-error.ts'
import type { Definition, Problem } from '../definition.ts'
import { checkComposition } from '../rules/composition.ts'
import type { BuildPlan } from './build-plan.ts'
import { checkShape } from '../format/check-shape.ts'
import { definitionFile, formatDefinitionFile, parseDefinitionFile } from '../format/definition-file.ts'
import { DefinitionFile, formatVersion } from '../format/format.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import { readDefinition } from '../read/read-definition.ts'

export interface PlanCheck {
  readonly plan: BuildPlan
  /** What the command line says in place of what the profiles say. */
  readonly name?: string | undefined
  readonly version?: string | undefined
  readonly limits: ArchiveLimits
}

/**
 * What the reader of archives would refuse of this one, by the code of the reader, before anything is packed: the fields
 * of definition.yaml, the form of every text, versions, and how much it would be. Every problem has the place where the
 * author finds it. What else may be wrong with the content is for `definition validate` to say.
 */
export async function checkPlan(options: PlanCheck): Promise<Problem[]> {
  const { plan, limits } = options
  const head = headOf(options)
  const problems = [
    ...checkShape(definitionFile, { ...head, sha256: '' }, DefinitionFile),
    ...checkHead(head, limits),
  ]
  const content = await readPlan(plan, head, limits).catch(asProblem)
  problems.push(
    ...content.problems.filter(({ severity }) => severity === 'error'),
    ...checkSize(plan, limits),
  )
  if (content.definition) problems.push(...checkVersions({ ...content.definition, version: head.version }))
  const toAuthor = createPlaces(options)
  // A version that comes from a profile is told as that of the profile.
  const told =
    options.version === undefined
      ? problems.filter(({ place }) => place !== `${definitionFile}#version`)
      : problems
  return told.map((problem) => ({ ...problem, place: toAuthor(problem.place) }))
}

type Head = ReturnType<typeof headOf>

const headOf = ({ plan: { title, profiles }, name, version }: PlanCheck) => ({
  formatVersion,
  name: name ?? title.name,
  version: version ?? title.version,
  description: title.description,
  profiles: profiles.map((each) => ({ uid: each.uid, name: each.name, version: each.version })),
})

/** What is left where each field has its shape: that all of it together is too long, or no YAML. */
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

/** The texts may be too large in all. */
function asProblem(error: unknown): { definition?: Definition; problems: Problem[] } {
  if (!(error instanceof AppError)) throw error
  const { member } = error.details ?? {}
  const place = typeof member === 'string' ? member : '--pack'
  return { problems: [errorAt(place, 'TooLarge', error.message)] }
}

/** A profile without a version, for one. */
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
  return [errorAt('--pack', 'TooLarge', `holds ${total} bytes in all; ${unpackedBytes} are allowed`)]
}

const errorAt = (place: string, code: string, message: string): Problem => ({
  code,
  severity: 'error',
  place,
  message,
})

/** From places in the archive to files and options that its author gave. */
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
    return `${members.get(file) ?? file}${rest}`
  }
}
