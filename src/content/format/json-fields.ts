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
  /** Number of items of a list. */
  length(name: string): number
  /** Names and texts of an object; empty if the field is missing. */
  texts(name: string): ReadonlyMap<string, string>
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

// One for all: a bundle has 100,000 descriptors without annotations.
const noTexts: ReadonlyMap<string, string> = new Map()

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a JSON document of a bundle.
 * @param place of the document, for messages: `index.json`, or its digest
 * @throws AppError JsonInvalid if it is not UTF-8, not JSON, or not an object
 */
export function parseFields(place: string, bytes: Uint8Array): Fields {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    throw refuseBundle('JsonInvalid', place, 'is not valid JSON in UTF-8; build the bundle again')
  }
  if (!isObject(value)) throw refuseBundle('JsonInvalid', place, `is ${describe(value)}, not an object`)
  return fieldsOf(place, value)
}

function fieldsOf(place: string, value: Readonly<Record<string, unknown>>): Fields {
  const placeOf = (name: string) => `${place}${place.includes('#') ? '.' : '#'}${name}`
  const get = (name: string): unknown => (Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined)
  const missing = (name: string) => refuseBundle('FieldMissing', placeOf(name), 'is missing')
  const wrong = (name: string, found: unknown, wanted: string) =>
    refuseBundle('FieldInvalid', placeOf(name), `is ${describe(found)}; it must be ${wanted}`)

  const optionalText = (name: string) => {
    const found = get(name)
    if (found !== undefined && typeof found !== 'string') throw wrong(name, found, 'a text')
    return found
  }
  const optionalObject = (name: string) => {
    const found = get(name)
    if (found === undefined) return undefined
    if (!isObject(found)) throw wrong(name, found, 'an object')
    return fieldsOf(placeOf(name), found)
  }
  const listOf = (name: string): readonly unknown[] => {
    const found = get(name) ?? []
    if (!Array.isArray(found)) throw wrong(name, found, 'a list')
    return found
  }
  return {
    place,
    has: (name) => get(name) !== undefined,
    optionalText,
    optionalObject,
    text(name) {
      const found = optionalText(name)
      if (found === undefined) throw missing(name)
      return found
    },
    count(name) {
      const found = get(name)
      if (found === undefined) throw missing(name)
      if (!Number.isSafeInteger(found) || (found as number) < 0)
        throw wrong(name, found, 'a whole number from 0 to 2^53 - 1')
      return found as number
    },
    object(name) {
      const found = optionalObject(name)
      if (found === undefined) throw missing(name)
      return found
    },
    *objects(name, most) {
      const found = listOf(name)
      if (found.length > most)
        throw refuseBundle(
          'TooManyDescriptors',
          placeOf(name),
          `has ${found.length} items; ${most} are allowed`,
        )
      for (const [index, item] of found.entries()) {
        if (!isObject(item)) throw wrong(`${name}[${index}]`, item, 'an object')
        yield fieldsOf(placeOf(`${name}[${index}]`), item)
      }
    },
    length: (name) => listOf(name).length,
    texts(name) {
      const found = get(name)
      if (found === undefined) return noTexts
      if (!isObject(found)) throw wrong(name, found, 'an object')
      const texts = new Map<string, string>()
      for (const [key, text] of Object.entries(found)) {
        if (typeof text !== 'string') throw wrong(`${name}.${key}`, text, 'a text')
        texts.set(key, text)
      }
      return texts
    },
  }
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return showText(JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value))
}
