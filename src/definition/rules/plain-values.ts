import { isUtf8 } from 'node:buffer'
import {
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { exactNumber, isRecord } from '../../base/json.ts'
import { exactDigits } from '../../base/write-yaml.ts'
import { nameOf, readYaml, scalarOf, standardTag, type YamlProblem } from './yaml-text.ts'

/** Converts offsets of a text to `place:line:column`, both from 1, columns in UTF-16 units. The text is scanned once, at the first call. */
export function createTextPlaces(place: string, text: string): (offset: number) => string {
  let starts: number[] | undefined
  return (offset) => {
    starts ??= findLines(text)
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return `${place}:${low + 1}:${offset - (starts[low] ?? 0) + 1}`
  }
}

function findLines(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** The documents of a YAML text as plain values, which JSON can write. */
export interface PlainText {
  /** Without empty documents; none if there is a problem. */
  readonly documents: readonly unknown[]
  /** Why the text cannot be read, each as the end of a sentence. */
  readonly problems: readonly string[]
}

/**
 * Reads YAML as helm, kubectl and kubeadm do: with the scalars of sigs.k8s.io/yaml, merge keys, and the last of two equal keys. A whole
 * number of 64 bits that JavaScript has no number for is an `exactNumber`. A value that JSON does not have is a problem. Never throws.
 */
export function readPlain(text: string): PlainText {
  const { documents, problems } = readValues(text, kubernetesValue)
  const at = createTextPlaces('line', text)
  const errors = problems
    .filter(({ code }) => code !== 'YamlKeyTwice')
    .map(({ code, offset, message }) => `${words(code)}: ${at(offset).replace(':', ' ')}: ${message}`)
  if (errors.length > 0) return { documents: [], problems: errors }
  return { documents: documents.map(({ value }) => value).filter((value) => value !== null), problems: [] }
}

/** A problem of the YAML, or a value that JSON does not have. */
export interface ValueProblem extends Omit<YamlProblem, 'code'> {
  readonly code: YamlProblem['code'] | 'YamlNoJson'
}

/** The fault of a text with a problem, as the end of a sentence. */
export const words = (code: ValueProblem['code']): string =>
  code === 'YamlInvalid' || code === 'YamlKeyTwice' ? 'is not valid YAML' : 'is not usable YAML'

/** A document as a plain value, and the place where it begins. */
export interface PlainDocument {
  readonly value: unknown
  readonly offset: number
}

/** All documents of a text, each alias as the same value as its anchor, with merge keys. Never throws. */
export function readValues(
  text: string,
  valueOf: (scalar: Scalar) => unknown,
): { readonly documents: readonly PlainDocument[]; readonly problems: readonly ValueProblem[] } {
  const documents: PlainDocument[] = []
  const refused: ValueProblem[] = []
  const { problems } = readYaml(text, [], ({ contents, range }) => {
    const reader = new ValueReader(valueOf)
    documents.push({ value: reader.read(contents), offset: range?.[0] ?? 0 })
    refused.push(...reader.problems)
  })
  return { documents, problems: [...problems, ...refused].slice(0, problemLimit) }
}

const problemLimit = 20
// Each of n mappings may merge the one before it, which makes n * n / 2 entries; real files have a few thousand.
const mergeLimit = 500_000
// A merge key of YAML 1.1, which kubectl and helm know.
const mergeKey = '<<'
const tagsWithoutJson = new Set(['timestamp', 'set', 'omap', 'pairs'])

class ValueReader {
  readonly problems: ValueProblem[] = []
  readonly #anchors = new Map<string, unknown>()
  /** Names of anchored nodes as keys. */
  readonly #names = new Map<string, string | undefined>()
  readonly #valueOf: (scalar: Scalar) => unknown
  #merged = 0

  constructor(valueOf: (scalar: Scalar) => unknown) {
    this.#valueOf = valueOf
  }

  read(node: unknown): unknown {
    if (isAlias(node)) return this.#anchors.get(node.source) ?? null
    if (!isScalar(node) && !isCollection(node)) return null
    const tag = node.tag?.startsWith(standardTag) === true ? node.tag.slice(standardTag.length) : ''
    if (tagsWithoutJson.has(tag)) {
      this.#say(
        'YamlNoJson',
        node,
        `has the tag !!${tag}, for which JSON has no value; write a text in quotes`,
      )
      return null
    }
    if (tag === 'binary' && isScalar(node)) return this.#keep(node, this.#binary(node))
    const value = isScalar(node)
      ? this.#scalar(node)
      : isSeq(node)
        ? node.items.map((item) => this.read(item))
        : isMap(node)
          ? this.#map(node)
          : null
    return this.#keep(node, value)
  }

  #keep(node: Scalar | YAMLMap | YAMLSeq, value: unknown): unknown {
    const { anchor } = node
    if (anchor === undefined) return value
    this.#anchors.set(anchor, value)
    this.#names.set(anchor, isScalar(node) ? nameOf(node) : undefined)
    return value
  }

  /** kubectl and helm take the bytes for text. */
  #binary(node: Scalar): string | null {
    const encoded = (node.source ?? '').replace(/[\r\n]/g, '')
    const bytes = Buffer.from(encoded, 'base64')
    if (bytes.toString('base64') === encoded && isUtf8(bytes)) return bytes.toString()
    this.#say(
      'YamlNoJson',
      node,
      'has the tag !!binary and is not the base64 of a text in UTF-8; write a text in quotes',
    )
    return null
  }

  #scalar(node: Scalar): unknown {
    const value = this.#valueOf(node)
    if (value === undefined) {
      this.#say('YamlInvalid', node, `does not fit its tag !!${node.tag?.slice(standardTag.length) ?? ''}`)
      return null
    }
    if (typeof value === 'string' && !value.isWellFormed())
      this.#say('YamlInvalid', node, 'has half of a character, as \\ud800; write the whole character')
    if (typeof value !== 'number' || Number.isFinite(value)) return value
    this.#say(
      'YamlNoJson',
      node,
      `is ${node.source ?? 'a number'}, for which JSON has no value; write a text in quotes`,
    )
    return null
  }

  /** As go-yaml, in the order of the text: a merge replaces entries before it, and entries after it replace merged ones. */
  #map({ items }: YAMLMap): unknown {
    const found = new Map<string, unknown>()
    for (const { key, value } of items) {
      const name = this.#nameOfKey(key)
      const plain = this.read(value)
      if (isMergeKey(key)) this.#merge(found, plain, key)
      else if (name !== undefined) found.set(name, plain)
    }
    // Unlike an assignment, this makes a property of a key such as `__proto__`.
    return Object.fromEntries(found)
  }

  #nameOfKey(key: unknown): string | undefined {
    if (isMergeKey(key)) return undefined
    const name = isScalar(key) ? nameOf(key) : isAlias(key) ? this.#names.get(key.source) : undefined
    if (isScalar(key)) this.#keep(key, this.#valueOf(key))
    if (name === undefined)
      this.#say(
        'YamlInvalid',
        key,
        `${isCollection(key) || isAlias(key) ? 'is a list or a mapping' : 'is null, bytes or a number of more than 63 bits'} and so cannot be a key; write a text in quotes`,
      )
    else if (!name.isWellFormed()) this.#say('YamlInvalid', key, 'has half of a character')
    return name
  }

  #merge(into: Map<string, unknown>, plain: unknown, key: Scalar): void {
    if (this.#merged > mergeLimit) return
    const given: readonly unknown[] = Array.isArray(plain) ? plain : [plain]
    if (!given.every(isRecord)) {
      this.#say('YamlInvalid', key, 'is a merge key, and its value is neither a mapping nor a list of them')
      return
    }
    // Of a list, the first has precedence.
    for (const each of given.toReversed()) {
      const entries = Object.entries(each)
      if (this.#merged <= mergeLimit && this.#merged + entries.length > mergeLimit)
        this.#say('YamlTooLarge', key, `merges more than ${mergeLimit} values`)
      this.#merged += entries.length + 1
      if (this.#merged > mergeLimit) return
      for (const [name, inherited] of entries) into.set(name, inherited)
    }
  }

  #say(code: ValueProblem['code'], node: unknown, message: string): void {
    if (this.problems.length < problemLimit)
      this.problems.push({ code, offset: (node as Node).range?.[0] ?? 0, message })
  }
}

const isMergeKey = (key: unknown): key is Scalar =>
  isScalar(key) &&
  key.source === mergeKey &&
  (key.tag === undefined ? key.type === 'PLAIN' : key.tag === `${standardTag}merge`)

/** The value of a scalar for helm, kubectl and kubeadm, all 64 bits of a whole number included. */
function kubernetesValue(node: Scalar): unknown {
  const value = scalarOf(node)
  if (typeof value !== 'number' || Number.isSafeInteger(value) || node.tag === `${standardTag}float`)
    return value
  const digits = exactDigits(node.source ?? '')
  return digits === undefined ? value : exactNumber(digits)
}
