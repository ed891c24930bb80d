import { metricName } from '../base/program.ts'
import type { SchemaNode } from '../config/key.ts'
import { strict } from '../config/schema-parts.ts'
import type { ErrorTable } from '../errors/define-errors.ts'
import type { Static, TSchema } from 'typebox'
import type { Declaration, Family, Finding, ReferenceCheck, Section, SupportSource } from './room.ts'

/** The declarations of all rooms in one, in their order. */
export interface Sum {
  /** Every error that a client can get. */
  readonly errorTable: ErrorTable
  /** Every metric. */
  readonly families: Readonly<Record<string, Family>>
  /** Meanings of the codes of `Attention`. */
  readonly attention: Readonly<Record<string, string>>
  /** The tags of the API document. */
  readonly tags: Readonly<Record<string, string>>
  /** Replies of the API for the support archive, beside the sources that the support program reads by itself. */
  readonly supportSources: readonly SupportSource[]
  /** Keys of the configuration that only make sense together. */
  readonly pairs: readonly (readonly [string, string])[]
  /** Schema of the whole configuration; every section is present once defaults are filled in. */
  readonly configSchema: SchemaNode
}

/** Merges declarations. @throws Error for a name that two rooms declare */
export function sumDeclarations(declarations: readonly Declaration[]): Sum {
  const sum = <T>(
    what: string,
    tableOf: (declaration: Declaration) => Readonly<Record<string, T>> | undefined,
  ): Record<string, T> => {
    const found: Record<string, T> = {}
    for (const [name, value] of declarations.flatMap((each) => Object.entries(tableOf(each) ?? {}))) {
      if (Object.hasOwn(found, name)) throw new Error(`${what} ${name} is declared twice`)
      found[name] = value
    }
    return found
  }

  const limited = Object.keys(sum('resource', (each) => byName(each.limited, (name) => name))).sort()
  const sections = Object.entries(sum<Section>('section', ({ config }) => config)).map(
    ([name, section]) => [name, typeof section === 'function' ? section({ limited }) : section] as const,
  )
  return {
    errorTable: sum('error', ({ errors }) => errors),
    families: Object.fromEntries(
      Object.entries(sum('metric', (each) => each.families)).map(([name, family]) => [
        metricName(name),
        family,
      ]),
    ),
    attention: sum('attention', (each) => each.attention),
    tags: sum('tag', (each) => each.tags),
    supportSources: Object.values(sum('support file', ({ support }) => byName(support, ({ name }) => name))),
    pairs: declarations.flatMap((each) => each.pairs ?? []),
    configSchema: {
      type: 'object',
      ...strict,
      properties: Object.fromEntries<SchemaNode>(sections),
      required: sections.map(([name]) => name),
    },
  }
}

const byName = <T>(items: readonly T[] | undefined, nameOf: (item: T) => string) =>
  Object.fromEntries((items ?? []).map((item) => [nameOf(item), item]))

/** A check of all cryptographic keys and files that a configuration names, as the rooms do at the start. */
export const checkFilesOf =
  (declarations: readonly Declaration[]) =>
  async (check: ReferenceCheck): Promise<readonly Finding[]> => {
    const found: Finding[] = []
    for (const each of declarations) found.push(...((await each.checkReferencedFiles?.(check)) ?? []))
    return found
  }

type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (
  each: infer All,
) => void
  ? All
  : never
type SectionsOf<Room> = Room extends { readonly config: infer Sections } ? Sections : never
type SchemaOf<Each> = Each extends (...all: never[]) => infer Made ? Made : Each

/** The configuration that rooms declare together: validated, complete, and frozen when it is loaded. */
export type ConfigOf<Room> =
  Intersection<SectionsOf<Room>> extends infer Sections
    ? {
        readonly [Name in keyof Sections]: SchemaOf<Sections[Name]> extends infer Schema extends TSchema
          ? Static<Schema>
          : never
      }
    : never
