import { Type } from 'typebox'

// One schema drives the file, the environment, the flags, --print-config and the documentation.
// Units stand in the names. Every key has a default unless it is optional; those carry an example.
// `accepts` says in an operator's words what a pattern or format lets through.
// `secret: true` keeps a value out of --print-config and of every message.

export const strict = { additionalProperties: false }
export const absolutePath = { pattern: '^/[^\\0]*$', accepts: 'an absolute path' }
export const path = (example: string, description: string) =>
  Type.String({ ...absolutePath, examples: [example], description })
export const positive = (fallback: number, maximum: number, description: string) =>
  Type.Integer({ minimum: 1, maximum, default: fallback, description })
