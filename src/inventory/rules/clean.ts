import { escapeInvisible } from '../../base/printable.ts'
import { isPlaceholderSerial } from '../../host/identity/identity.ts'

/** Untrusted data of a tool, of firmware or of a device. */
export type Raw = Readonly<Record<string, unknown>>

/** Untrusted data as an object; a value that is not an object becomes one without fields. */
export const rawOf = (value: unknown): Raw =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : {}

/** Untrusted data as a list of objects, at most the first `most`. */
export const rawList = (value: unknown, most: number): readonly Raw[] =>
  Array.isArray(value) ? value.slice(0, most).map(rawOf) : []

const longest = 256

// Texts that firmware, tools and systeminformation write for an unknown value.
const placeholder = new RegExp(
  `^(${[
    '[-.]*|0+|-1|0x0+|x{2,}|n/?a|none|null|nil|unknown|undefined|unspecified|invalid|empty|default|oem|o\\.e\\.m\\.?',
    'to be filled.*|tbd|default string|.*\\bo\\.?e\\.?m\\.? ?(string)?',
    'not (specified|provided|available|applicable|present|settable|set|defined|installed|supported)',
    '(no|unknown|invalid) (asset (tag|information)|serial( number)?|enclosure|dimm|module installed|manufacturer)',
    '(system|base ?board|board|chassis|product) ?(product )?(name|manufacturer|vendor|version|serial( number)?|sku( number)?|asset tag)',
    '(asset|asset ?tag|manufacturer|partnum|part ?number|sernum|serial ?number|sku|bank)[ _]?\\d{0,2}',
    '<?(bad index|out of spec)>?|\\[(unknown|error|n/a)\\]|x\\.x+|type2 - board .*',
  ].join('|')})$`,
  'i',
)

/** A printable text of one line and at most 256 characters; undefined for a placeholder. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  // The rest is not read: the text of a device may be of any length.
  const whole = String(value).slice(0, 4_096).toWellFormed().replace(/\s+/g, ' ').trim()
  if (placeholder.test(whole)) return undefined
  const shown = escapeInvisible(whole)
  return shown.length > longest ? `${shown.slice(0, longest - 3).toWellFormed()}...` : shown
}

/** A serial number; undefined for a placeholder, which is the same on every machine of a product line. */
export function serialOf(value: unknown): string | undefined {
  const text = textOf(value)
  const bare = (text ?? '').toLowerCase().replace(/[^a-z0-9]/g, '')
  // A short serial cannot identify a host, but it is printed on the part.
  return bare === '' || (bare.length >= 4 && isPlaceholderSerial(bare)) ? undefined : text
}

/** A number above 0, also from a text such as `3200 MT/s`; undefined for all other values. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number.parseFloat(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : undefined
}

/**
 * A temperature in °C, which may be 0 or lower: outdoors, in a cold store. undefined for all other values, and for those of sensors that
 * measure nothing: 0 K (-273), and bytes of 0x80 or 0xff.
 */
export const celsiusOf = (value: unknown): number | undefined =>
  typeof value === 'number' && value > -100 && value < 200 ? value : undefined

/** The same as `numberOf`, rounded to a whole number. */
export function integerOf(value: unknown): number | undefined {
  const number = Math.round(numberOf(value) ?? 0)
  return number > 0 && Number.isSafeInteger(number) ? number : undefined
}

type Known<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** The fields that are known. */
export function known<T extends object>(fields: T): Known<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Known<T>
}

/** A part of the inventory by its name, or nothing where none of its fields is known. */
export function part<Name extends string, T extends object>(
  name: Name,
  fields: T,
): Partial<Record<Name, Known<T>>> {
  const found = known(fields)
  return (Object.keys(found).length > 0 ? { [name]: found } : {}) as Partial<Record<Name, Known<T>>>
}
