import { parseCookie, stringifySetCookie } from 'cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Cookie that carries the access token, as published clients send it. */
export const accessCookie = 'Authorization'
/** Cookie that carries the refresh token. */
export const refreshCookie = 'RefreshToken'

// No script and no other site can use them, and they are sent only over TLS.
const attributes = { path: '/', httpOnly: true, secure: true, sameSite: 'strict' } as const

/** A cookie of the request; parsed only when asked for. */
export function findCookie(request: FastifyRequest, name: string): string | undefined {
  const header = request.headers.cookie
  return header === undefined ? undefined : parseCookie(header)[name] || undefined
}

/** Has the browser keep both tokens until it is closed. */
export function setTokenCookies(reply: FastifyReply, tokens: { access: string; refresh: string }): void {
  void reply.header('set-cookie', [
    stringifySetCookie({ name: accessCookie, value: tokens.access, ...attributes }),
    stringifySetCookie({ name: refreshCookie, value: tokens.refresh, ...attributes }),
  ])
}

/** Has the browser remove both tokens. */
export function clearTokenCookies(reply: FastifyReply): void {
  void reply.header(
    'set-cookie',
    [accessCookie, refreshCookie].map((name) =>
      stringifySetCookie({ name, value: '', maxAge: 0, ...attributes }),
    ),
  )
}
