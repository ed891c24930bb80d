import type { Key, SchemaNode } from './key.ts'

/** A value that one layer sets for one key. Only valid values become part of the configuration. */
export interface Setting {
  readonly key: Key
  readonly value: unknown
  /** The source as shown by --print-config: `file:line`, `environment NAME` or `flag --name` */
  readonly source: string
}

/**
 * Parses a text from the environment or a flag. Lists are separated by commas; an empty text is the empty list. Text
 * that does not fit the type is returned unchanged, and `checkValue` then refuses it.
 */
export function parseText(schema: SchemaNode, text: string): unknown {
  switch (schema.type) {
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'integer':
      return /^[+-]?\d+$/.test(text) ? Number(text) : text
    case 'number':
      return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : text
    case 'array': {
      const { items = {} } = schema
      return text === '' ? [] : text.split(',').map((item) => parseText(items, item.trim()))
    }
    case undefined:
    default:
      return text
  }
}
