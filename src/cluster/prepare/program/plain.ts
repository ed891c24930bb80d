import { isAlias, isCollection, isMap, isScalar, isSeq, type YAMLMap } from 'yaml'
import { createTextPlaces } from '../../../definition/rules/text-places.ts'
import { nameOf, readYaml, scalarOf } from '../../../definition/rules/yaml-text.ts'
import { isRecord } from '../../../base/json.ts'

/** The documents of a YAML text as plain values, which JSON can write. */
export interface PlainText {
  /** Without empty documents; none if there is a problem. */
  readonly documents: readonly unknown[]
  /** Why the text cannot be read, each as the end of a sentence. */
  readonly problems: readonly string[]
}

/**
 * Reads YAML as helm and kubectl do: with the scalars of sigs.k8s.io/yaml, merge keys, and the last of two equal keys.
 * Never throws.
 */
export function readPlain(text: string): PlainText {
  const documents: unknown[] = []
  const { problems } = readYaml(text, [], ({ contents }) => {
    const value = toPlain(contents, new Map())
    if (value !== null) documents.push(value)
  })
  const at = createTextPlaces('line', text)
  const errors = problems
    .filter(({ code }) => code !== 'YamlKeyTwice')
    .map(({ offset, message }) => `is not valid YAML: ${at(offset).replace(':', ' ')}: ${message}`)
  return errors.length > 0 ? { documents: [], problems: errors } : { documents, problems: [] }
}

type Anchors = Map<string, unknown>

function toPlain(node: unknown, anchors: Anchors): unknown {
  if (isAlias(node)) return anchors.get(node.source) ?? null
  const value = isScalar(node)
    ? scalarOf(node)
    : isSeq(node)
      ? node.items.map((item) => toPlain(item, anchors))
      : isMap(node)
        ? mapOf(node, anchors)
        : null
  if ((isScalar(node) || isCollection(node)) && node.anchor !== undefined) anchors.set(node.anchor, value)
  return value
}

// A merge key of YAML 1.1, which kubectl and helm know.
const mergeKey = '<<'

function mapOf({ items }: YAMLMap, anchors: Anchors): unknown {
  const own = new Map<string, unknown>()
  const merged = new Map<string, unknown>()
  for (const { key, value } of items) {
    const plain = toPlain(value, anchors)
    if (!isScalar(key)) continue
    if (key.type !== 'PLAIN' || key.source !== mergeKey) {
      own.set(nameOf(key), plain)
      continue
    }
    for (const each of [plain].flat().filter(isRecord))
      for (const [name, inherited] of Object.entries(each)) if (!merged.has(name)) merged.set(name, inherited)
  }
  // Unlike an assignment, this makes a property of a key such as `__proto__`.
  return Object.fromEntries([...[...merged].filter(([name]) => !own.has(name)), ...own])
}

export type Mapping = Readonly<Record<string, unknown>>

/** The mapping below keys; empty if there is none. */
export function mappingAt(value: unknown, ...keys: readonly string[]): Mapping {
  const found = valueAt(value, ...keys)
  return isRecord(found) ? found : {}
}

/** The value below keys; undefined if there is none. */
export function valueAt(value: unknown, ...keys: readonly string[]): unknown {
  let found: unknown = value
  for (const key of keys) found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return found
}

/** The text of a single value; undefined for nothing, lists and mappings. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined
