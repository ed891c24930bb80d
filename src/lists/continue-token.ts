import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { refuse, type FieldValue } from './resource.ts'

/** End of a page. Not a row number, so that inserted and deleted rows do not shift the next page. */
export interface Position {
  /** Values of the last item, one for each term of the order. */
  readonly values: readonly FieldValue[]
  /** Index of the first item of the next page. */
  readonly offset: number
}

/** Creates and verifies the token of the next page: opaque to clients, signed, bound to its query. */
export interface ContinueTokens {
  /** @throws AppError BadRequest when a value is too long for a token, far longer than a field to order by should be */
  make(query: string, position: Position): string
  /** @returns undefined for a token that was altered or belongs to another query */
  parse(query: string, token: string): Position | undefined
}

/** Maximum length of a token in characters: five ordered fields of 256 bytes, escaped, in base64. */
export const longestToken = 4_096

/** @param secret 256 bits that are used for nothing else */
export function createContinueTokens(secret: Buffer): ContinueTokens {
  // Importing the raw bytes for each token would cost four times as much as the rest.
  const key = createSecretKey(secret)
  // The signature covers the query, the token does not contain it. The signed data is one JSON text, so its parts
  // cannot be shifted into each other.
  const codeOf = (query: string, body: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([query, body]))
      .digest('base64url')

  return {
    make(query, { values, offset }) {
      const body = Buffer.from(JSON.stringify([offset, ...values])).toString('base64url')
      const token = `${body}.${codeOf(query, body)}`
      if (token.length > longestToken) {
        throw refuse(
          'orderBy',
          'orderBy names a text that is too long for a continue token; order by another path',
        )
      }
      return token
    },

    parse(query, token) {
      const [body, code, ...rest] = token.split('.')
      if (!body || !code || rest.length > 0 || token.length > longestToken) return undefined
      const given = Buffer.from(code)
      const expected = Buffer.from(codeOf(query, body))
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
      const position = JSON.parse(Buffer.from(body, 'base64url').toString()) as [number, ...FieldValue[]]
      const [offset, ...values] = position
      return { values, offset }
    },
  }
}
