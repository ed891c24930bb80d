import { Document, visit } from 'yaml'
import { escapeForYaml, needsEscapes } from './json.ts'

/** The type of a text in YAML without quotes. */
export type PlainKind = 'text' | 'number' | 'boolean' | 'null'

/** The type that a text without quotes has in YAML. */
export function plainKind(text: string): PlainKind {
  const value = parsePlain(text)
  if (value === null) return 'null'
  return typeof value === 'string' ? 'text' : (typeof value as 'number' | 'boolean')
}

const nulls = /^(?:~|null|Null|NULL|)$/
const trues = /^(?:true|True|TRUE|yes|Yes|YES|on|On|ON|y|Y)$/
const falses = /^(?:false|False|FALSE|no|No|NO|off|Off|OFF|n|N)$/
const notFinite = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const decimal = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/
const octal = /^[-+]?0[0-7]+$/
const based = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/

/**
 * The value of plain text for the readers of Helm and kubectl (sigs.k8s.io/yaml), which follow neither YAML 1.1 nor 1.2:
 * `yes` and `on` are booleans, `0644` is octal and `1_000` a number, but `1:20` and dates are text. A test compares this
 * with recorded results of that library.
 */
export function parsePlain(text: string): string | number | boolean | null {
  if (nulls.test(text)) return null
  if (trues.test(text)) return true
  if (falses.test(text)) return false
  if (notFinite.test(text)) return /n$/i.test(text) ? NaN : text.startsWith('-') ? -Infinity : Infinity
  if (!/^[-+.0-9]/.test(text)) return text
  const digits = text.startsWith('.') ? text : text.replaceAll('_', '')
  const [, sign, number] = based.exec(digits) ?? []
  if (number !== undefined) {
    // Integers have 64 bits; a larger one is text.
    const value = BigInt(number)
    if (value > (sign === '-' ? 1n << 63n : (1n << 64n) - 1n)) return text
    return Number(value) * (sign === '-' ? -1 : 1)
  }
  if (!decimal.test(digits)) return text
  const value = octal.test(digits) ? parseInt(digits, 8) : Number(digits)
  return Number.isFinite(value) ? value : text
}

/** The decimal digits of plain text that is a whole number of 64 bits, to the same readers; undefined for any other text. */
export function exactDigits(text: string): string | undefined {
  const [, sign = '', number = ''] = /^([-+]?)([0-9][0-9a-zA-Z]*)$/.exec(text.replaceAll('_', '')) ?? []
  const literal = /^0[0-7]+$/.test(number) ? `0o${number.slice(1)}` : number
  if (!/^(?:[0-9]+|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(literal) || literal.length > 80)
    return undefined
  const value = BigInt(literal) * (sign === '-' ? -1n : 1n)
  return value < -(1n << 63n) || value >= 1n << 64n ? undefined : String(value)
}

/** Why a text needs quotes in YAML; undefined if it does not. @param isInFlow inside [] or {} */
export function refusePlain(text: string, isInFlow: boolean): string | undefined {
  if (/[\r\n]/.test(text)) return 'a line break'
  if (/^\s|\s$/.test(text)) return 'a space at its beginning or end'
  if (/:(?:\s|$)/.test(text)) return 'a colon before a space or the end'
  if (/\s#/.test(text)) return 'a space before #'
  if (/^(?:[-?:](?:\s|$)|[,[\]{}#&*!|>'"%@`])/.test(text))
    return 'a character at its beginning that has a meaning in YAML'
  if (isInFlow && /[,[\]{}]/.test(text)) return 'a comma or bracket, inside brackets'
  return undefined
}

// What readers of YAML 1.1 know: base 60, dates, and the keys for a merge and a value.
const otherThanText = /^(?:<<$|=$|[-+]?[0-9][0-9_]*(?::[0-9]|$)|[0-9]{4}-[0-9]{1,2}-[0-9])/

/**
 * Writes a value as YAML that readers of 1.1, of 1.2 and go-yaml read alike: a text that one of them would take for another type
 * is in quotes. @throws RangeError for a value that is nested too deeply
 */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_key, node) {
      const { value: text } = node
      if (typeof text !== 'string') return
      if (typeof parsePlain(text) !== 'string' || otherThanText.test(text) || needsEscapes(text))
        node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeForYaml(document.toString({ lineWidth: 0, doubleQuotedAsJSON: true }))
}
