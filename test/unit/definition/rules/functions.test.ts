import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  evaluate,
  functionNames,
  writeValue,
  parseAction,
  parseExpression,
} from '../../../../src/definition/rules/expression.ts'

// Made by test/fixtures/helm/record-functions.ts.
const record = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../fixtures/helm/functions.json'), 'utf8'),
) as [string, { text?: string; refused?: string }][]

/** The result of an expression over literals. */
const run = (expression: string): string | { refusal: string } => {
  const action = parseAction(`{{ ${expression} }}`, 0)
  if (!action) return { refusal: 'is no action' }
  const parsed = parseExpression(action.tokens)
  if ('fault' in parsed) return { refusal: parsed.fault.message }
  const result = evaluate(parsed.expression, {
    valueOf: () => ({ missing: 'never' }),
    spend: () => undefined,
  })
  return 'value' in result ? writeValue(result.value) : { refusal: JSON.stringify(result) }
}

// For these, helm gives text that is not UTF-8, or an error in the text: they are refused here.
const isRefusedHere = (text: string) => /\ufffd|^illegal base(?:32|64) data/.test(text)

describe('a function of templates', () => {
  it.each(record.filter(([, { text }]) => text !== undefined && !isRefusedHere(text)))(
    'a function returns what helm returns: %s',
    (expression, { text }) => {
      expect(run(expression)).toBe(text === '<no value>' ? '' : text)
    },
  )

  it.each(record.filter(([, { text = '\ufffd' }]) => isRefusedHere(text)))(
    'a function refuses what helm refuses: %s',
    (expression) => {
      expect(run(expression)).toHaveProperty('refusal')
    },
  )

  it.each(functionNames)('the function %s is compared with helm', (name) => {
    const uses = record.filter(([expression]) => new RegExp(`(?:^|[ (|])${name}(?: |$|\\))`).test(expression))
    expect(uses.length).toBeGreaterThan(0)
  })

  it.each(functionNames)('the function %s is listed in docs/definition-format.md', (name) => {
    const document = readFileSync(join(import.meta.dirname, '../../../../docs/definition-format.md'), 'utf8')
    expect(document).toContain(`\`${name}\``)
  })
})
