import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { Document, Node, YAMLMap } from 'yaml'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import { checkValue, describeFound } from './check-value.ts'
import { toKey, type Key, type SchemaNode } from './key.ts'
import type { Problem } from './problem.ts'
import type { Setting } from './setting.ts'

/** The content of one configuration file. */
export interface ParsedFile {
  readonly settings: readonly Setting[]
  /** Keys in the file, including those with a refused value → their place. */
  readonly mentioned: ReadonlyMap<string, string>
  readonly problems: readonly Problem[]
  /** False when the text is not YAML, so that the keys it was meant to set are unknown. */
  readonly understood: boolean
}

const aliasLimit = 100
const syntaxProblemLimit = 20

/**
 * Parses one configuration file, YAML 1.2 with the core schema, into settings and problems. It walks the text along the
 * schema and never builds objects from it, so neither nested aliases nor keys such as `__proto__` can do harm.
 * @param file the file name for problems
 * @param schema of the whole file
 * @param known every key of that schema, for suggestions
 */
export function parseYaml(file: string, text: string, schema: SchemaNode, known: readonly Key[]): ParsedFile {
  const lineCounter = new LineCounter()
  // Duplicate keys are checked below: the library compares every key with every other key.
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
  MULTIPLE_DOCS: 'a second document begins here; a file may have only one',
  RESOURCE_EXHAUSTION: 'nested too deeply',
}

function refuseDocument(document: Document): string | undefined {
  const version = document.directives?.yaml.version ?? '1.2'
  if (version !== '1.2') return `asks for YAML ${version}; only YAML 1.2 is read`
  // The library resolves each alias by a walk over the file.
  let aliases = 0
  visit(document, { Alias: () => (++aliases > aliasLimit ? visit.BREAK : undefined) })
  return aliases > aliasLimit ? `has more than ${aliasLimit} aliases (*name)` : undefined
}

/** One pass over one document, in document order, that collects settings and problems. */
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

  /** Reads a mapping that the schema defines; an empty one sets nothing. */
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
    const reason = schema.absent?.[path.slice(path.lastIndexOf('.') + 1)]
    if (reason !== undefined) {
      this.#report(node, `unknown key ${path}; ${reason}`)
      return
    }
    const siblings = Object.keys(schema.properties ?? {}).map((name) => [...segments, name].join('.'))
    // Typing errors are compared with the sibling keys by their last part, so that a long section name does not make
    // all keys of the section look alike.
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

  /** The node that an alias refers to; for an alias without an anchor, the alias itself, after reporting it. */
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

/** The value of a scalar; a collection is only represented by its kind, since no key accepts a nested one. */
function toPlain(node: unknown): unknown {
  if (isMap(node)) return {}
  if (isSeq(node)) return []
  return isScalar(node) ? node.value : null
}
