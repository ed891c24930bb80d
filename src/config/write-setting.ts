import { escapeInvisible } from '../base/printable.ts'

const reserved = /^(true|false|null|yes|no|on|off|y|n)$/i

/**
 * Writes a value of the configuration as YAML on one line. Text is unquoted only where every YAML version reads it as
 * text; otherwise it is quoted, with control and invisible characters escaped.
 */
export function writeSetting(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeSetting).join(', ')}]`
  if (typeof value !== 'string') return JSON.stringify(value)
  if (/^[A-Za-z/][A-Za-z0-9._/-]*$/.test(value) && !reserved.test(value)) return value
  return escapeInvisible(JSON.stringify(value))
}
