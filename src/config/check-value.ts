import { parseNetwork } from '../base/address.ts'
import { isIP } from 'node:net'
import { printable } from '../base/printable.ts'
import type { Key, SchemaNode } from './key.ts'

// Walks the schema directly instead of using Ajv: loading and compiling Ajv takes some 30 ms of every start, its
// messages are about schemas instead of settings, and the configuration needs only these keywords.

/**
 * The problems of a value of this key, in an operator's words; empty when it is valid. Values of secret keys are never
 * repeated.
 */
export function checkValue(key: Key, value: unknown): string[] {
  const { schema } = key
  if (schema.type === 'array' && Array.isArray(value)) {
    const items = schema.items ?? {}
    return value.flatMap((item: unknown, index) => checkOne(`${key.path}[${index}]`, items, item, key.secret))
  }
  return checkOne(key.path, schema, value, key.secret)
}

function checkOne(name: string, schema: SchemaNode, value: unknown, secret: boolean): string[] {
  if (isAccepted(schema, value)) return []
  const must = `it must be ${describeAccepted(schema)}`
  const found =
    secret && value !== null && typeof value !== 'object' ? 'not acceptable' : describeFound(value)
  const isPlainScalar = typeof value === 'number' || typeof value === 'boolean'
  const hint = schema.type === 'string' && isPlainScalar ? '; put it in quotes to make it text' : ''
  return [`${name} is ${found}; ${must}${hint}`]
}

function isAccepted(schema: SchemaNode, value: unknown): boolean {
  if (schema.anyOf) return schema.anyOf.some((choice) => choice.const === value)
  switch (schema.type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isSafeInteger(value) && isInRange(schema, value as number)
    case 'number':
      return Number.isFinite(value) && isInRange(schema, value as number)
    case 'string':
      return typeof value === 'string' && isAcceptedText(schema, value)
    case undefined:
    default:
      return false
  }
}

function isInRange({ minimum = -Infinity, maximum = Infinity, exclusiveMinimum }: SchemaNode, value: number) {
  return value >= minimum && value <= maximum && (exclusiveMinimum === undefined || value > exclusiveMinimum)
}

function isAcceptedText(schema: SchemaNode, text: string): boolean {
  if (text.length < (schema.minLength ?? 0) || text.length > (schema.maxLength ?? Infinity)) return false
  if (schema.format === 'ip' && isIP(text) === 0) return false
  if (schema.format === 'network' && parseNetwork(text) === undefined) return false
  return schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(text)
}

/** The values that a key accepts: `a whole number from 1 to 65535`. */
export function describeAccepted(schema: SchemaNode): string {
  if (schema.accepts !== undefined) return schema.accepts
  if (schema.anyOf) return `one of ${schema.anyOf.map((choice) => String(choice.const)).join(', ')}`
  switch (schema.type) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `a whole number${describeRange(schema)}`
    case 'number':
      return `a number${describeRange(schema)}`
    case 'array':
      return `a list, each item ${describeAccepted(schema.items ?? {})}`
    case undefined:
    default:
      return describeText(schema)
  }
}

function describeRange({ minimum, maximum, exclusiveMinimum }: SchemaNode): string {
  const above = exclusiveMinimum === undefined ? '' : ` above ${exclusiveMinimum}`
  const from = minimum === undefined ? '' : ` from ${minimum}`
  const upTo = maximum === undefined ? '' : ` ${above ? 'and at most' : 'to'} ${maximum}`
  return above + from + upTo
}

function describeText({ minLength = 0, maxLength }: SchemaNode): string {
  if (maxLength !== undefined) return `text of ${minLength} to ${maxLength} characters`
  return minLength > 0 ? 'text that is not empty' : 'text'
}

/** A short description of the value found instead, on one line. */
export function describeFound(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return `"${printable(value)}"`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return 'a section'
}
