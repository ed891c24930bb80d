import { isRecord } from '../../base/json.ts'
import { refuseBundle, showText } from './refusal.ts'

/** The known fields of a JSON object of a bundle. Fields with the value null count as missing: Go writes empty lists so. */
export interface Fields {
  /** For messages: `index.json#manifests[3]`. */
  readonly place: string
  has(name: string): boolean
  /** @throws AppError FieldMissing or FieldInvalid, as all of these */
  text(name: string): string
  optionalText(name: string): string | undefined
  /** A whole number, not negative. */
  count(name: string): number
  object(name: string): Fields
  optionalObject(name: string): Fields | undefined
  /** The objects of a list, one at a time, so that a long list is not held twice; none if the field is missing. */
  objects(name: string, most: number): Generator<Fields>
  /** The items of a list, unchecked; none if the field is missing. */
  items(name: string): readonly unknown[]
  /** Names and texts of an object; empty if the field is missing. */
  texts(name: string): ReadonlyMap<string, string>
}

// One for all: a bundle has 100,000 descriptors without annotations.
const noTexts: ReadonlyMap<string, string> = new Map()

// An empty object takes 3 bytes here and 56 in memory. A document has at most 50,000 descriptors with some objects each.
const mostNested = 1_000_000
const [brace, bracket] = [0x7b, 0x5b]

function countNested(bytes: Uint8Array): number {
  let count = 0
  // Several times as fast as for…of.
  let at = bytes.length
  while (at > 0) {
    at -= 1
    const byte = bytes[at]
    if (byte === brace || byte === bracket) count += 1
  }
  return count
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a JSON document of a bundle.
 * @param place of the document, for messages: `index.json`, or its digest
 * @throws AppError JsonInvalid if it is not UTF-8, not JSON, or not an object
 */
export function parseFields(place: string, bytes: Uint8Array): Fields {
  if (countNested(bytes) > mostNested)
    throw refuseBundle('TooManyDescriptors', place, `has more than ${mostNested} objects and lists`)
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    throw refuseBundle('JsonInvalid', place, 'is not valid JSON in UTF-8; build the bundle again')
  }
  if (!isRecord(value)) throw refuseBundle('JsonInvalid', place, `is ${describe(value)}, not an object`)
  return new JsonFields(place, value)
}

/** A class, since a bundle has 100,000 objects, and a closure for each verb of each of them takes most of the time. */
class JsonFields implements Fields {
  readonly place: string
  readonly #value: Readonly<Record<string, unknown>>

  constructor(place: string, value: Readonly<Record<string, unknown>>) {
    this.place = place
    this.#value = value
  }

  has(name: string): boolean {
    return this.#get(name) !== undefined
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.#missing(name)
  }

  optionalText(name: string): string | undefined {
    const found = this.#get(name)
    if (found !== undefined && typeof found !== 'string') return this.#wrong(name, found, 'a text')
    return found
  }

  count(name: string): number {
    const found = this.#get(name) ?? this.#missing(name)
    if (!Number.isSafeInteger(found) || (found as number) < 0)
      return this.#wrong(name, found, 'a whole number from 0 to 2^53 - 1')
    return found as number
  }

  object(name: string): Fields {
    return this.optionalObject(name) ?? this.#missing(name)
  }

  optionalObject(name: string): Fields | undefined {
    const found = this.#get(name)
    if (found === undefined) return undefined
    if (!isRecord(found)) return this.#wrong(name, found, 'an object')
    return new JsonFields(this.#placeOf(name), found)
  }

  *objects(name: string, most: number): Generator<Fields> {
    const found = this.items(name)
    const place = this.#placeOf(name)
    if (found.length > most)
      throw refuseBundle('TooManyDescriptors', place, `has ${found.length} items; ${most} are allowed`)
    for (const [index, item] of found.entries()) {
      if (!isRecord(item)) return this.#wrong(`${name}[${index}]`, item, 'an object')
      yield new JsonFields(`${place}[${index}]`, item)
    }
  }

  items(name: string): readonly unknown[] {
    const found = this.#get(name) ?? []
    return Array.isArray(found) ? found : this.#wrong(name, found, 'a list')
  }

  texts(name: string): ReadonlyMap<string, string> {
    const found = this.#get(name)
    if (found === undefined) return noTexts
    if (!isRecord(found)) return this.#wrong(name, found, 'an object')
    const texts = new Map<string, string>()
    for (const [key, text] of Object.entries(found)) {
      if (typeof text !== 'string') return this.#wrong(`${name}.${key}`, text, 'a text')
      texts.set(key, text)
    }
    return texts
  }

  #get(name: string): unknown {
    return Object.hasOwn(this.#value, name) ? (this.#value[name] ?? undefined) : undefined
  }

  #placeOf(name: string): string {
    return `${this.place}${this.place.includes('#') ? '.' : '#'}${name}`
  }

  #missing(name: string): never {
    throw refuseBundle('FieldMissing', this.#placeOf(name), 'is missing')
  }

  #wrong(name: string, found: unknown, wanted: string): never {
    throw refuseBundle('FieldInvalid', this.#placeOf(name), `is ${describe(found)}; it must be ${wanted}`)
  }
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return showText(JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value))
}
