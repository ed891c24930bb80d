import type { FastifyRequest } from 'fastify'

/** Whether `If-None-Match` of a request names this tag; a weak tag stands for the same bytes (RFC 9110, 13.1.2). */
export function matchesEtag({ headers }: FastifyRequest, etag: string): boolean {
  const field = headers['if-none-match']
  if (field === undefined) return false
  return field.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
