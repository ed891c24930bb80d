import type { Static, TSchema } from 'typebox'
import { about as api } from './api/about.ts'
import { about as audit } from './audit/about.ts'
import { about as auth } from './auth/about.ts'
import { about as certificate } from './certificate/about.ts'
import type { SchemaNode } from './config/key.ts'
import { strict } from './config/schema-parts.ts'
import { about as definition } from './definition/about.ts'
import type { ErrorTable } from './errors/define-errors.ts'
import { about as host } from './host/about.ts'
import { about as jobs } from './jobs/about.ts'
import { about as metrics } from './metrics/about.ts'
import { about as program } from './program/about.ts'
import type { Declaration, Family, Finding, ReferenceCheck, Section } from './room.ts'
import { about as service } from './service/about.ts'
import { about as store } from './store/about.ts'
import { about as upload } from './upload/about.ts'

// In the order in which an operator reads them: in the configuration file, in the documents.
const all = [
  service,
  host,
  api,
  certificate,
  auth,
  upload,
  definition,
  audit,
  jobs,
  metrics,
  store,
  program,
] as const

/** What each room says of itself. */
export const declarations: readonly Declaration[] = all

/** @throws Error for a name that two rooms declare */
function sum<T>(
  what: string,
  tables: readonly (Readonly<Record<string, T>> | undefined)[],
): Record<string, T> {
  const found: Record<string, T> = {}
  for (const [name, value] of tables.flatMap((table) => Object.entries(table ?? {}))) {
    if (Object.hasOwn(found, name)) throw new Error(`${what} ${name} is declared twice`)
    found[name] = value
  }
  return found
}

/** Every error that a client can meet. */
export const errorTable: ErrorTable = sum(
  'error',
  declarations.map(({ errors }) => errors),
)

/** Every metric. */
export const families: Readonly<Record<string, Family>> = sum(
  'metric',
  declarations.map((each) => each.families),
)

/** The tags of the API document. */
export const tags = sum(
  'tag',
  declarations.map((each) => each.tags),
)

const limited = Object.keys(
  sum(
    'resource',
    declarations.map((each) => Object.fromEntries((each.limited ?? []).map((name) => [name, true]))),
  ),
).sort()

/** What goes into the support archive beside what the support program reads by itself. */
export const supportSources = Object.values(
  sum(
    'support file',
    declarations.map((each) =>
      Object.fromEntries((each.support ?? []).map((source) => [source.name, source])),
    ),
  ),
)

/** Keys of the configuration that only make sense together. */
export const pairs = declarations.flatMap((each) => each.pairs ?? [])

type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (
  each: infer All,
) => void
  ? All
  : never
type SectionsOf<Room> = Room extends { readonly config: infer Sections } ? Sections : never
type SchemaOf<Each> = Each extends (...all: never[]) => infer Made ? Made : Each
type Sections = Intersection<SectionsOf<(typeof all)[number]>>

/** Validated and complete; frozen when it is loaded. */
export type Config = {
  readonly [Name in keyof Sections]: SchemaOf<Sections[Name]> extends infer Schema extends TSchema
    ? Static<Schema>
    : never
}

const sections = Object.entries(
  sum<Section>(
    'section',
    declarations.map(({ config }) => config),
  ),
).map(([name, section]) => [name, typeof section === 'function' ? section({ limited }) : section] as const)

/** The whole configuration, every section present once defaults are filled in. */
export const ConfigSchema: SchemaNode = {
  type: 'object',
  ...strict,
  properties: Object.fromEntries<SchemaNode>(sections),
  required: sections.map(([name]) => name),
}

/** Judges everything that a configuration names, each as its room does at the start. */
export async function checkReferencedFiles(check: ReferenceCheck): Promise<readonly Finding[]> {
  const found: Finding[] = []
  for (const each of declarations) found.push(...((await each.checkReferencedFiles?.(check)) ?? []))
  return found
}
