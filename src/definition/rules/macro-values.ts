import { printable } from '../../base/printable.ts'
import type { Problem, Profile } from '../definition.ts'
import type { DefinitionCode } from './codes.ts'
import { requiredLayers } from './composition.ts'
import { evaluate, writeValue, type Known } from './expression.ts'
import { type Expression, type Reference, Refusal, type Value } from './functions/value.ts'
import type { ValueKind } from './formats.ts'
import type { Macro } from './macro.ts'
import { createPackValues, textOf, type PackValue } from './pack-values.ts'
import { plainKind } from '../../base/write-yaml.ts'
import { type Report, createSuggest } from './problem-list.ts'
import type { SourceText } from './sources.ts'
import { createSystemMacros, type SystemFacts } from './system-macros.ts'

/** The value of a macro. */
export interface MacroValue {
  /** Undefined if it is not known, yet or ever. */
  readonly text: string | undefined
  readonly kind: ValueKind | undefined
  /** Whether it is a fact such as the name of the cluster: text in every place. */
  readonly isFact?: boolean
  /** Why there is no value. */
  readonly problem?: MacroProblem
}

export interface MacroProblem {
  readonly code: DefinitionCode
  readonly message: string
  /** If it differs from the severity of its code. */
  readonly severity?: Problem['severity']
}

export interface MacroEdges {
  readonly sources: readonly SourceText[]
  readonly profiles: readonly Profile[]
  readonly facts: SystemFacts
  /** Undefined if the profile does not declare it. */
  readonly variableOf: (profile: Profile, name: string) => MacroValue | undefined
  readonly variableNames: (profile: Profile) => Iterable<string>
  /** Receives circular references. */
  readonly report: Report
}

/** A value of a pack that a macro refers to, while its own macros are resolved. */
interface Target extends PackValue {
  /** Indices of the macros in it. */
  readonly macros: readonly number[]
  /** The references of these macros, each with the offset of its macro. */
  readonly asks: readonly { readonly reference: Reference; readonly braces: number }[]
  state: 'new' | 'open' | 'done'
  /** Number of resolved `asks`. */
  done: number
  value: MacroValue
}

const unknown: MacroValue = { text: undefined, kind: undefined }
// Length to which a value of a pack may grow: values may contain each other, and 30 doublings would fill the memory.
const lengthLimit = 1_048_576
// Names that the message about a circle shows.
const cycleNameLimit = 50
// Characters that all functions together may return: some seconds of work.
const workLimit = 10_000_000
// Reported circles; describing one takes time that grows with its length.
const cycleLimit = 1_000

/** The values of all macros of a definition. Values of packs may contain macros, which are resolved first, each once. */
export function createMacroValues(edges: MacroEdges) {
  const { sources, profiles, facts, variableOf, variableNames, report } = edges
  const findValue = createPackValues(sources, profiles)
  const targets = new Map<PackValue['scalar'], Target>()
  const system = createSystemMacros(facts, profiles)
  const suggest = createSuggest(50)
  let cycles = cycleLimit
  let work = workLimit

  const problem = (code: DefinitionCode, message: string): MacroValue => ({
    ...unknown,
    problem: { code, message },
  })
  /** An error in layers without which a cluster cannot start. */
  const platformOnly = ({ layer }: SourceText, message: string): MacroValue => ({
    ...unknown,
    problem: {
      code: 'MacroPlatformOnly',
      message,
      ...(requiredLayers.includes(layer) ? { severity: 'error' } : {}),
    },
  })

  const targetOf = (value: PackValue): Target => {
    const earlier = targets.get(value.scalar)
    if (earlier) return earlier
    const macros = value.source.yaml.masked.indicesIn(textOf(value.scalar))
    const asks = macros.flatMap((index) => {
      const { references = [], braces = 0 } = value.source.macros[index] ?? {}
      return references.map((reference) => ({ reference, braces }))
    })
    const target: Target = { ...value, macros, asks, state: 'new', done: 0, value: unknown }
    targets.set(value.scalar, target)
    return target
  }

  /** The value of a reference or, if it is a value of a pack whose macros may have to be resolved first, its target. */
  const look = (source: SourceText, { kind, name }: Reference): MacroValue | Target => {
    const { profile } = source
    if (profile === undefined) return unknown
    switch (kind) {
      case 'var': {
        const declared = variableOf(profile, name)
        if (declared) return declared
        const hint = suggest(name, variableNames(profile))
        return problem(
          'VariableUndeclared',
          `profile ${printable(profile.name)} declares no variable ${printable(name)}${hint}`,
        )
      }
      case 'system': {
        const known = system.find(profile, name)
        if (known?.by === 'host') return { text: known.text, kind: 'text', isFact: true }
        if (known) return platformOnly(source, `only the platform knows ${printable(name)}`)
        return problem(
          'MacroSystemUnknown',
          `there is no system fact ${printable(name)}${suggest(name, system.names)}`,
        )
      }
      case 'macro':
        return platformOnly(
          source,
          `${printable(name)} is a macro of a project or tenant, which only the platform knows`,
        )
      case 'pack': {
        const found = findValue(name)
        if (found?.value) return targetOf(found.value)
        if (!found) return unknown
        const reason = problem(found.code, found.message)
        // The platform resolves it to an empty text too.
        return found.code === 'MacroPathEmpty' ? { ...reason, text: '' } : reason
      }
    }
  }

  const finish = (target: Target): void => {
    const { source, scalar, macros } = target
    const written = textOf(scalar)
    const values = new Map(macros.map((index) => [index, settled(source, index)]))
    target.state = 'done'
    let length = written.length
    for (const index of macros) length += values.get(index)?.text?.length ?? 0
    if (length > lengthLimit) {
      target.value = problem(
        'MacroTooLong',
        `${printable(target.name)} becomes longer than ${lengthLimit} characters`,
      )
      return
    }
    if ([...values.values()].some(({ text }) => text === undefined)) return
    const text = source.yaml.masked.unmask(written, (index) => values.get(index)?.text ?? '')
    target.value = { text, kind: kindOf(scalar, text) }
  }

  const spend = (length: number): void => {
    work -= length
    if (work < 0) throw new Refusal('makes the output of all functions too long; use fewer or shorter values')
  }

  const compute = (expression: Expression, asked: (reference: Reference) => MacroValue): MacroValue => {
    let absent: MacroValue | undefined
    let wrong: MacroValue | undefined
    const result = evaluate(expression, {
      spend,
      valueOf: (reference): Known => {
        const found = asked(reference)
        if (found.problem === undefined)
          return found.text === undefined ? { missing: 'later' } : { value: found.text }
        if (absentCodes.has(found.problem.code)) absent ??= found
        else wrong ??= found
        return { missing: 'never' }
      },
    })
    if (wrong) return wrong
    if ('refusal' in result) return problem('MacroFunctionFailed', result.refusal)
    if ('missing' in result) return result.missing === 'never' && absent ? absent : unknown
    return { text: writeValue(result.value), kind: kindOfValue(result.value) }
  }

  /** The value of a macro, from the values of its references. */
  const combine = (macro: Macro, asked: (reference: Reference) => MacroValue): MacroValue => {
    const { fault, expression } = macro
    if (expression === undefined) return fault ? problem(fault.code, fault.message) : unknown
    return expression.kind === 'reference' ? asked(expression.reference) : compute(expression, asked)
  }

  const settled = (source: SourceText, index: number): MacroValue => {
    const macro = source.macros[index]
    if (macro === undefined) return unknown
    return combine(macro, (reference) => {
      const value = look(source, reference)
      return 'state' in value ? value.value : value
    })
  }

  /** Depth first with an explicit stack, since a chain may be as long as the definition is large. */
  const resolve = (root: Target): MacroValue => {
    const stack = [root]
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      top.state = 'open'
      const ask = top.asks[top.done]
      if (ask === undefined) {
        finish(top)
        stack.pop()
        continue
      }
      const next = look(top.source, ask.reference)
      if ('state' in next && next.state === 'new') {
        stack.push(next)
        continue
      }
      if ('state' in next && next.state === 'open' && --cycles >= 0)
        report('MacroCycle', top.source.at(ask.braces), describeCycle(stack, next))
      top.done += 1
    }
    return root.value
  }

  /** The value of a macro, or the reason why it has none. */
  const valueOf = (source: SourceText, macro: Macro): MacroValue => {
    if (source.profile === undefined) return unknown
    return combine(macro, (reference) => {
      const value = look(source, reference)
      if (!('state' in value)) return value
      return value.state === 'done' ? value.value : resolve(value)
    })
  }
  return { valueOf }
}

// Codes of missing values for which a function such as `default` may give another value.
const absentCodes: ReadonlySet<DefinitionCode> = new Set([
  ...(['MacroPlatformOnly', 'MacroPackUnknown', 'MacroPathEmpty'] as const),
])

function kindOfValue(value: Value): ValueKind {
  if (typeof value === 'boolean') return 'boolean'
  return typeof value === 'number' || typeof value === 'bigint' ? 'number' : 'text'
}

function describeCycle(stack: readonly Target[], back: Target): string {
  const names = [...stack.slice(stack.indexOf(back)), back].map(({ name }) => printable(name))
  const shown =
    names.length > cycleNameLimit ? [...names.slice(0, cycleNameLimit), '...', printable(back.name)] : names
  return `values refer to each other in a circle: ${shown.join(' -> ')}`
}

function kindOf({ value, type, tag }: PackValue['scalar'], text: string): ValueKind {
  if (type === 'PLAIN' && tag === undefined) {
    const kind = plainKind(text)
    return kind === 'null' ? 'text' : kind
  }
  if (typeof value === 'boolean') return 'boolean'
  return typeof value === 'number' ? 'number' : 'text'
}
