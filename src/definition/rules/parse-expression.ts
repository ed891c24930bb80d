import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { DefinitionCode } from './codes.ts'
import { countsOf, functionNames } from './evaluate.ts'
import type { Expression } from './expression.ts'
import type { Token } from './macro-tokens.ts'

export interface Fault {
  readonly code: DefinitionCode
  readonly message: string
}

class Invalid extends Error {
  readonly code: DefinitionCode
  constructor(code: DefinitionCode, message: string) {
    super(message)
    this.code = code
  }
}

const invalid = (message: string) => new Invalid('MacroInvalid', message)

/**
 * Parses a pipeline of Go templates, `.spectro.system.NAME | function value | function`, also with parentheses. It reports
 * all faults that do not depend on values: unknown functions, and too few or too many arguments.
 */
export function parseExpression(tokens: readonly Token[]): { expression: Expression } | { fault: Fault } {
  let next = 0
  const peek = () => tokens[next]?.kind

  const operand = (): Expression => {
    const token = tokens[next]
    next += 1
    switch (token?.kind) {
      case 'value':
        return { kind: 'literal', value: token.value }
      case 'reference':
        return { kind: 'reference', reference: token.reference }
      case 'word':
        return call(token.name, [])
      case 'open': {
        let inside = pipeline()
        if (peek() !== 'close') throw invalid('has a parenthesis that is not closed')
        next += 1
        for (let field = tokens[next]; field?.kind === 'field'; field = tokens[next]) {
          inside = { kind: 'field', of: inside, name: field.name }
          next += 1
        }
        return inside
      }
      case undefined:
        throw invalid('ends where a value or a function is expected')
      case 'close':
      case 'field':
      case 'other':
      case 'pipe':
        throw invalid('has another token where a value or a function is expected')
    }
  }
  const isOperand = () => ['value', 'reference', 'word', 'open'].includes(peek() ?? '')

  /** A function with its arguments, of which the last is the piped value; or a single value. */
  const command = (piped: readonly Expression[]): Expression => {
    const token = tokens[next]
    if (token?.kind === 'word') {
      next += 1
      const values: Expression[] = []
      while (isOperand()) values.push(operand())
      return call(token.name, [...values, ...piped])
    }
    if (piped.length > 0) throw invalid('has no function after |')
    const value = operand()
    if (value.kind === 'literal' && value.value === null) throw invalid('has nil where a value is expected')
    if (isOperand()) throw invalid('has two values and no function')
    return value
  }
  const pipeline = (): Expression => {
    let expression = command([])
    while (peek() === 'pipe') {
      next += 1
      expression = command([expression])
    }
    return expression
  }

  try {
    const expression = pipeline()
    if (next < tokens.length) throw invalid('has something after its end')
    return { expression }
  } catch (error) {
    if (error instanceof Invalid) return { fault: { code: error.code, message: error.message } }
    throw error
  }
}

function call(name: string, values: readonly Expression[]): Expression {
  const counts = countsOf(name)
  if (counts === undefined) {
    const near = nearestName(name, functionNames)
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    throw new Invalid('MacroFunctionUnknown', `has the unknown function ${printable(name)}${hint}`)
  }
  const { least, most } = counts
  if (values.length < least || values.length > most) {
    const wanted = least === most ? least : `${least}${most === Infinity ? ' or more' : ` to ${most}`}`
    throw invalid(`gives the function ${name} ${values.length} values; it takes ${wanted}`)
  }
  return { kind: 'call', name, values }
}
