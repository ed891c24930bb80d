import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { Problem } from '../definition.ts'

/** The part of JSON Schema that `format.ts` uses. */
export interface Shape {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly items?: Shape
  readonly pattern?: string
  /** Texts that the pattern accepts, in words. */
  readonly accepts?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
}

// A file with more problems usually has one cause.
const problemLimit = 100

/**
 * Every difference between a value and a shape, in words and with its place. Written here because a schema validator stops
 * after some errors and words them for developers.
 * @param file member of the archive, for the places
 */
export function checkShape(file: string, value: unknown, shape: object): Problem[] {
  const problems: Problem[] = []
  const report = (path: string, code: string, message: string) => {
    if (problems.length < problemLimit)
      problems.push({ code, severity: 'error', place: path === '' ? file : `${file}#${path}`, message })
  }

  const walk = (found: unknown, wanted: Shape, path: string): void => {
    if (wanted.enum !== undefined) {
      if (!wanted.enum.includes(found))
        report(path, 'FieldInvalid', `is ${describe(found)}; it must be one of: ${wanted.enum.join(', ')}`)
      return
    }
    if (wanted.type === undefined) return
    if (!isOfType(found, wanted.type)) {
      report(path, 'FieldInvalid', `is ${describe(found)}; it must be ${article(wanted.type)}`)
      return
    }
    if (typeof found === 'string') checkText(found, wanted, path)
    else if (typeof found === 'number') checkNumber(found, wanted, path)
    else if (Array.isArray(found)) {
      checkLength(found.length, wanted, path)
      for (const [index, item] of found.entries()) walk(item, wanted.items ?? {}, `${path}[${index}]`)
    } else walkFields(found as Record<string, unknown>, wanted, path)
  }

  const walkFields = (
    found: Record<string, unknown>,
    { properties = {}, required = [] }: Shape,
    path: string,
  ) => {
    for (const [name, shape] of Object.entries(properties)) {
      const inner = path === '' ? name : `${path}.${name}`
      if (Object.hasOwn(found, name)) {
        // Exports write null for a field that is not set.
        if (found[name] === null && !required.includes(name)) continue
        walk(found[name], shape, inner)
      } else if (required.includes(name)) report(inner, 'FieldMissing', 'is missing')
    }
  }

  const checkText = (
    found: string,
    { pattern, accepts = 'in another form', minLength = 0, maxLength = Infinity }: Shape,
    path: string,
  ) => {
    if (found.length < minLength) report(path, 'FieldInvalid', 'is empty')
    else if (found.length > maxLength)
      report(path, 'FieldInvalid', `has ${found.length} characters; ${maxLength} are allowed`)
    else if (pattern !== undefined && !new RegExp(pattern, 'u').test(found))
      report(path, 'FieldInvalid', `is ${describe(found)}; it must be ${accepts}`)
  }

  const checkNumber = (found: number, { minimum = -Infinity, maximum = Infinity }: Shape, path: string) => {
    if (found < minimum || found > maximum)
      report(path, 'FieldInvalid', `is ${found}; it must be from ${minimum} to ${maximum}`)
  }

  const checkLength = (length: number, { minItems = 0, maxItems = Infinity }: Shape, path: string) => {
    if (length < minItems) report(path, 'FieldInvalid', 'is empty')
    if (length > maxItems) report(path, 'FieldInvalid', `has ${length} items; ${maxItems} are allowed`)
  }

  walk(value, shape, '')
  return problems
}

/**
 * Warnings for keys that are not known and were most likely meant as a known one that is absent: their values would be lost without a word.
 * Other unknown keys are usual, as exports contain many that have no meaning here.
 * @param file member of the archive, for the places
 */
export function checkSpelling(file: string, value: unknown, shape: object): Problem[] {
  const problems: Problem[] = []
  const walk = (found: unknown, { properties = {}, items }: Shape, path: string): void => {
    if (Array.isArray(found)) {
      for (const [index, item] of found.entries()) walk(item, items ?? {}, `${path}[${index}]`)
      return
    }
    if (typeof found !== 'object' || found === null) return
    const known = Object.keys(properties)
    const absent = known.filter((name) => !Object.hasOwn(found, name))
    for (const [name, inner] of Object.entries(found)) {
      const place = path === '' ? name : `${path}.${name}`
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (own) {
        walk(inner, own, place)
        continue
      }
      const meant = known.length === 0 || name.includes('.') ? undefined : nearestName(name, absent)
      if (meant === undefined || problems.length >= problemLimit) continue
      problems.push({
        code: 'FieldMisspelt',
        severity: 'warning',
        place: `${file}#${printable(place)}`,
        message: `is not known, so it has no effect; did you mean ${meant}?`,
      })
    }
  }
  walk(value, shape, '')
  return problems
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

const article = (type: string): string =>
  ({ string: 'a text', array: 'a list', integer: 'a whole number', boolean: 'true or false' })[type] ??
  `an ${type}`

function describe(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
