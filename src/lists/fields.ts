import type { TSchema } from 'typebox'
import { refuse } from './resource.ts'

/** The fields of a value that are kept, by name; a tree without names keeps the whole value. */
export interface FieldTree {
  readonly names: ReadonlyMap<string, FieldTree>
}

/** An item that may lack any of its fields. */
export type Pruned<T> = T extends readonly (infer Element)[]
  ? Pruned<Element>[]
  : T extends object
    ? { [Name in keyof T]?: Pruned<T[Name]> }
    : T

// No item has a path deeper than this; a deeper path would only build a deep tree.
const maximumDepth = 16

/**
 * Parses `metadata.uid,metadata.name`.
 * @param item schema of an item; without it every path is accepted
 * @throws AppError BadRequest naming the paths that do not exist
 */
export function parseFields(text: string, item?: TSchema): FieldTree {
  const paths = text.split(',').map((path) => path.split('.'))
  const unknown = paths.filter(
    (path) => path.includes('') || path.length > maximumDepth || (item && !isPathOf(item as Schema, path)),
  )
  if (unknown.length > 0) {
    const names = [...new Set(unknown.map((path) => path.join('.')))]
    throw refuse('fields', `fields names paths that do not exist: ${names.join(', ')}`, { unknown: names })
  }
  return treeOf(paths)
}

/** Keeps the fields of an item that the tree names. In an array, the rest of the path applies to each element. */
export function pruneItem<Item>(item: Item, tree: FieldTree): Pruned<Item> {
  return prune(item, tree) as Pruned<Item>
}

/** Whether the tree names a path, a part of it, or a parent of it. */
export function namesPath(tree: FieldTree, path: readonly string[]): boolean {
  let below: FieldTree | undefined = tree
  for (const name of path) {
    if (below.names.size === 0) return true
    below = below.names.get(name)
    if (!below) return false
  }
  return true
}

function prune(value: unknown, tree: FieldTree): unknown {
  if (tree.names.size === 0 || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((element) => prune(element, tree))
  const kept = [...tree.names]
    .filter(([name]) => Object.hasOwn(value, name))
    .map(([name, below]) => [name, prune((value as Record<string, unknown>)[name], below)] as const)
  return Object.fromEntries(kept)
}

function treeOf(paths: readonly (readonly string[])[]): FieldTree {
  // An empty path selects the whole value.
  if (paths.some((path) => path.length === 0)) return { names: new Map() }
  const groups = Map.groupBy(paths, ([name = '']) => name)
  return {
    names: new Map([...groups].map(([name, group]) => [name, treeOf(group.map((path) => path.slice(1)))])),
  }
}

/** The part of JSON Schema that defines property names. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly patternProperties?: unknown
  readonly additionalProperties?: unknown
  readonly type?: string
}

function isPathOf(schema: Schema, path: readonly string[]): boolean {
  const [name, ...rest] = path
  if (name === undefined) return true
  if (schema.items) return isPathOf(schema.items, path)
  const branches = schema.anyOf ?? schema.allOf
  if (branches) return branches.some((branch) => isPathOf(branch, path))
  if (schema.properties && Object.hasOwn(schema.properties, name))
    return isPathOf(schema.properties[name] ?? {}, rest)
  // Labels and annotations may have any name.
  return schema.patternProperties !== undefined || Boolean(schema.additionalProperties)
}
