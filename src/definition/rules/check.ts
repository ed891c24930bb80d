import { printable } from '../../base/printable.ts'
import type { Definition, Problem } from '../definition.ts'
import { checkComposition } from './composition.ts'
import { createMacroReading } from './macros.ts'
import { createProblemList, type Report } from './problem-list.ts'
import { parseSourceTexts, type OnDocument, type SourceText } from './sources.ts'
import { checkDependencies } from './pack-values.ts'
import type { Patterns } from './pattern.ts'
import { createValueSchemas } from './value-schemas.ts'
import { parseVariables, type VariableRules } from './variables.ts'

export interface CheckEdges {
  /** Called with every YAML document when it is parsed. */
  readonly onDocument?: OnDocument
  /** Collects the patterns of the variables. */
  readonly patterns?: Patterns
}

/**
 * All errors of a definition, and all warnings that an operator should know before a deployment, with the codes of
 * codes.ts. Variables have their defaults; a variable without a value is no problem here. It takes about 1 s for 3 MB of
 * YAML, so it must not run on the event loop of the daemon.
 */
export function checkDefinition(
  definition: Definition,
  { onDocument, patterns }: CheckEdges = {},
): Problem[] {
  const problems = createProblemList()
  const { report } = problems
  checkComposition(definition, report)
  checkDependencies(definition, report)
  const variables = parseVariables(definition.profiles, patterns)
  problems.adopt(variables.problems)
  const checkAgainstSchemas = createValueSchemas(definition, report)
  const sources = parseSourceTexts(definition, report, (text, document, unmask) => {
    checkAgainstSchemas(text, document, unmask)
    onDocument?.(text, document, unmask)
  })
  createMacroReading({
    sources,
    profiles: definition.profiles,
    variables,
    facts: {},
    report,
    givenTo: () => undefined,
    isComplete: false,
  }).check()
  reportUnused(variables, sources, report)
  return problems.list()
}

function reportUnused({ declared }: VariableRules, sources: readonly SourceText[], report: Report): void {
  for (const { profile, rules } of declared) {
    const used = new Set(
      sources
        .filter((source) => source.profile === profile)
        .flatMap(({ macros }) =>
          macros.flatMap(({ references }) =>
            references.flatMap(({ kind, name }) => (kind === 'var' ? [name] : [])),
          ),
        ),
    )
    profile.variables.forEach(({ name }, index) => {
      if (used.has(name) || rules.get(name)?.variable !== profile.variables[index]) return
      const place = `${profile.place}#spec.variables[${index}]`
      report(
        'VariableUnused',
        place,
        `variable ${printable(name)} is declared but no values or manifests use it`,
      )
    })
  }
}
