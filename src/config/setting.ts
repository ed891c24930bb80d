import type { Key, SchemaNode } from './key.ts'

/** One value that one layer gives to one key. Only accepted values become part of the configuration. */
export interface Setting {
  readonly key: Key
  readonly value: unknown
  /** As --print-config shows it: `file:line`, `environment NAME` or `flag --name` */
  readonly source: string
}

/**
 * The value that a text from the environment or a flag stands for. Lists are separated by commas, an empty
 * text is the empty list. A text that fits no type stays as it is, for `checkValue` to refuse it.
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
