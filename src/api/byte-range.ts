import type { FastifyRequest } from 'fastify'

/** Bytes of a file: `start` and `end`, the last one included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses the field `Range` of a request (RFC 9110, 14.1 and 14.2).
 * @returns undefined where the whole file is to be sent: without the field, for one that breaks the grammar, and for several
 *   ranges, which a server may answer so. `unsatisfiable` for a range without a byte of the file.
 */
export function parseRange(
  field: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(field ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const count = Math.min(Number(last), sizeBytes)
    return count === 0 ? 'unsatisfiable' : { start: sizeBytes - count, end: sizeBytes - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= sizeBytes) return 'unsatisfiable'
  return { start, end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
}

/** The range of a request; with `If-Range` it counts only for the same content (RFC 9110, 13.1.5). */
export function rangeFor({ headers }: FastifyRequest, etag: string, sizeBytes: number) {
  const condition = headers['if-range']
  return condition === undefined || condition === etag ? parseRange(headers.range, sizeBytes) : undefined
}
