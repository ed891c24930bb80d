import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { Document, Node, YAMLMap } from 'yaml'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import { checkValue, describeFound } from './check-value.ts'
import { toKey, type Key, type SchemaNode } from './key.ts'
import type { Problem } from './problem.ts'
import type { Setting } from './setting.ts'

/** What one file says. */
export interface ParsedFile {
  readonly settings: readonly Setting[]
  /** Keys the file names, also those whose value was refused → their place. */
  readonly mentioned: ReadonlyMap<string, string>
  readonly problems: readonly Problem[]
  /** False when the text is no YAML, so that nothing is known of what it was meant to set. */
  readonly understood: boolean
}

const aliasLimit = 100
const syntaxProblemLimit = 20

/**
 * Settings and problems of one configuration file, YAML 1.2 with the core schema. The text is walked along the
 * schema and never turned into objects, so neither nested aliases nor keys such as `__proto__` can do harm.
 * @param file the name that problems carry
 * @param schema of the whole file
 * @param known every key of that schema, for suggestions
 */
export function parseYaml(file: string, text: string, schema: SchemaNode, known: readonly Key[]): ParsedFile {
  const lineCounter = new LineCounter()
  // Duplicate keys are found below: the library compares each key with each other one.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: false, merge: false })
  const place = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset)
    return `${file}:${line}:${col}`
  }
  const errors = [...document.errors, ...document.warnings]
  if (errors.length > 0) {
    const problems = errors.slice(0, syntaxProblemLimit).map(({ code, message, pos }) => ({
      place: place(pos[0]),
      message: syntaxMessages[code] ?? `not valid YAML: ${printable(message)}`,
    }))
    return { settings: [], mentioned: new Map(), problems, understood: false }
  }
  const refusal = refuseDocument(document)
  if (refusal !== undefined) {
    return {
      settings: [],
      mentioned: new Map(),
      problems: [{ place: file, message: refusal }],
      understood: false,
    }
  }
  const walk = new Walk(
    file,
    document,
    known.map((key) => key.path),
    lineCounter,
  )
  walk.section(document.contents, schema, [])
  const { settings, mentioned, problems } = walk
  return { settings, mentioned, problems, understood: true }
}

const syntaxMessages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a second document begins here; a file holds one',
  RESOURCE_EXHAUSTION: 'nested too deeply',
}

function refuseDocument(document: Document): string | undefined {
  const version = document.directives?.yaml.version ?? '1.2'
  if (version !== '1.2') return `asks for YAML ${version}; only YAML 1.2 is read`
  // Each alias is looked up by a walk over the file.
  let aliases = 0
  visit(document, { Alias: () => (++aliases > aliasLimit ? visit.BREAK : undefined) })
  return aliases > aliasLimit ? `holds more than ${aliasLimit} aliases (*name)` : undefined
}

/** One pass over one document, in its order, collecting what it finds. */
class Walk {
  readonly settings: Setting[] = []
  readonly mentioned = new Map<string, string>()
  readonly problems: Problem[] = []
  readonly #file: string
  readonly #document: Document
  readonly #known: readonly string[]
  readonly #lines: LineCounter

  constructor(file: string, document: Document, known: readonly string[], lines: LineCounter) {
    this.#file = file
    this.#document = document
    this.#known = known
    this.#lines = lines
  }

  /** A mapping that the schema knows; an empty one sets nothing. */
  section(written: unknown, schema: SchemaNode, segments: readonly string[]): void {
    const node = this.#follow(written)
    if (isAlias(node) || node === null || (isScalar(node) && node.value === null)) return
    const name = segments.length === 0 ? 'the file' : segments.join('.')
    if (!isMap(node)) {
      const parts = Object.keys(schema.properties ?? {}).join(', ')
      this.#report(written, `${name} is ${describeFound(toPlain(node))}; it must be a section of ${parts}`)
      return
    }
    this.#pairs(node, schema, segments)
  }

  #pairs(map: YAMLMap, schema: SchemaNode, segments: readonly string[]): void {
    const lines = new Map<string, number>()
    for (const pair of map.items) {
      if (!isScalar(pair.key)) {
        this.#report(pair.key, 'a key must be a plain name')
        continue
      }
      const name = String(pair.key.value)
      const inner = [...segments, name]
      const path = inner.join('.')
      const earlier = lines.get(name)
      if (earlier !== undefined) {
        this.#report(pair.key, `${printable(path)} is given twice; first in line ${earlier}`)
      }
      lines.set(name, this.#position(pair.key).line)
      const child = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined
      if (child === undefined) this.#unknown(pair.key, path, schema, segments)
      else if (child.properties) this.section(pair.value, child, inner)
      else this.#value(pair.value ?? pair.key, pair.value, toKey(inner, child))
    }
  }

  #unknown(node: Node, path: string, schema: SchemaNode, segments: readonly string[]): void {
    const siblings = Object.keys(schema.properties ?? {}).map((name) => [...segments, name].join('.'))
    // A slip is looked for among the neighbours by their own names, so that a long section name does not
    // make everything in it look alike.
    const start = segments.length === 0 ? 0 : segments.join('.').length + 1
    const neighbours = siblings.map((sibling) => sibling.slice(start))
    const near = nearestName(path.slice(start), neighbours)
    const meant = near === undefined ? nearestName(path, this.#known) : siblings[neighbours.indexOf(near)]
    const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`
    this.#report(node, `unknown key ${printable(path)}${suggestion}`)
  }

  #value(at: unknown, written: unknown, key: Key): void {
    this.mentioned.set(key.path, this.#place(at))
    const node = this.#follow(written)
    if (isAlias(node)) return
    const value = isSeq(node) ? node.items.map((item) => toPlain(this.#follow(item))) : toPlain(node)
    const messages = checkValue(key, value)
    for (const message of messages) this.#report(at, message)
    if (messages.length > 0) return
    this.settings.push({ key, value, source: `${this.#file}:${this.#position(at).line}` })
  }

  /** The node an alias stands for; the alias itself, reported, when it has no anchor. */
  #follow(node: unknown): unknown {
    if (!isAlias(node)) return node
    const target = node.resolve(this.#document)
    if (target === undefined) this.#report(node, `alias *${printable(node.source)} has no anchor before it`)
    return target ?? node
  }

  #position(node: unknown): { line: number; col: number } {
    return this.#lines.linePos((node as Node | null)?.range?.[0] ?? 0)
  }

  #report(node: unknown, message: string): void {
    this.problems.push({ place: this.#place(node), message })
  }

  #place(node: unknown): string {
    const { line, col } = this.#position(node)
    return `${this.#file}:${line}:${col}`
  }
}

/** A scalar's value; collections only by their kind, since no key takes one inside. */
function toPlain(node: unknown): unknown {
  if (isMap(node)) return {}
  if (isSeq(node)) return []
  return isScalar(node) ? node.value : null
}
