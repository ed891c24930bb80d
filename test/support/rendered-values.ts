import type { Definition, Problem, Variable, GivenVariable } from '../../src/definition/definition.ts'
import { renderDefinition } from '../../src/definition/rules/macros.ts'
import type { SystemFacts } from '../../src/definition/rules/system-macros.ts'
import { definitionOf, profileOf, profilePack } from './definitions.ts'

export interface Given {
  readonly variables?: readonly Variable[]
  readonly given?: readonly GivenVariable[]
  readonly facts?: SystemFacts
}

/** `Code line:column` of problems in values. */
export const placesOf = (problems: readonly Problem[]) =>
  problems.map(({ code, place }) => `${code} ${place.replace(/^.*values:/, '')}`)

/** One profile with one pack `app`. */
export const appDefinition = (values: string, variables: readonly Variable[] = []): Definition =>
  definitionOf([profileOf([profilePack('app', values)], variables)])

/** A definition, rendered with its defaults only unless more is given. */
export const render = (definition: Definition, { given = [], facts = {} }: Omit<Given, 'variables'> = {}) =>
  renderDefinition(definition, { given, facts })

/** The values of one pack `app`, rendered. */
export const renderValues = (values: string, { variables, ...rest }: Given = {}) => {
  const { texts, problems } = render(appDefinition(values, variables), rest)
  return { content: texts[0]?.content, problems, places: placesOf(problems) }
}

/** One variable `v` with a default. */
export const variable = (defaultValue: string, rest: Partial<Variable> = {}): Given => ({
  variables: [{ name: 'v', defaultValue, ...rest }],
})
