import type { Problem, Variable } from '../../src/cluster/definition.ts'
import { renderDefinition } from '../../src/cluster/rules/macros.ts'
import type { SystemFacts } from '../../src/cluster/rules/macro-values.ts'
import type { GivenVariable } from '../../src/cluster/rules/variables.ts'
import { definitionOf, profileOf, profilePack } from './definitions.ts'

export interface Given {
  readonly variables?: readonly Variable[]
  readonly given?: readonly GivenVariable[]
  readonly facts?: SystemFacts
}

/** `Code line:column` of problems in values. */
export const placesOf = (problems: readonly Problem[]) =>
  problems.map(({ code, place }) => `${code} ${place.replace(/^.*values:/, '')}`)

/** The values of one pack `app`, rendered. */
export const renderValues = (values: string, { variables = [], given = [], facts = {} }: Given = {}) => {
  const definition = definitionOf([profileOf([profilePack('app', values)], variables)])
  const { texts, problems } = renderDefinition(definition, { given, facts })
  return { content: texts[0]?.content, problems, places: placesOf(problems) }
}

/** One variable `v` with a default. */
export const variable = (defaultValue: string, rest: Partial<Variable> = {}): Given => ({
  variables: [{ name: 'v', defaultValue, ...rest }],
})
