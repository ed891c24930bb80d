import type { AppError } from '../errors/app-error.ts'

/** What all replies of one app have in common. */
export interface Replies {
  /** Header fields of every reply. A route may set one of them anew for its own. */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of every refusal and failure. */
  readonly errorType: string
  /**
   * The one body of every refusal and failure, a value for JSON.
   * @param ref id of the request
   */
  errorBody(error: AppError, ref: string): unknown
}

/** How the service API replies: JSON that no browser shows as a page and nothing on the way keeps. */
export const apiReplies = {
  headers: { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
  errorType: 'application/json; charset=utf-8',
  errorBody: ({ code, message, details }, ref) => ({ code, message, ...(details ? { details } : {}), ref }),
} as const satisfies Replies

/** What an app adds whose replies a browser shows as pages. */
export const pageHeaders = {
  'strict-transport-security': 'max-age=63072000',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const
