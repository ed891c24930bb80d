import { Type } from 'typebox'

// One schema is the source for the file, the environment, the flags, --print-config and the documentation.
// Names include the unit. Every key has a default unless it is optional; optional keys have an example.
// `accepts` describes the values of a pattern or format in an operator's words.
// `secret: true` keeps a value out of --print-config and out of every message.

export const strict = { additionalProperties: false }
export const absolutePath = { pattern: '^/[^\\0]*$', accepts: 'an absolute path' }
export const path = (example: string, description: string) =>
  Type.String({ ...absolutePath, examples: [example], description })
export const positive = (fallback: number, maximum: number, description: string) =>
  Type.Integer({ minimum: 1, maximum, default: fallback, description })
