import type { AppError } from '../errors/app-error.ts'

/** What all replies of one app have in common. */
export interface Replies {
  /** Header fields of every reply. A route may override them. */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of every refusal and failure. */
  readonly errorType: string
  /**
   * The one body of every refusal and failure, a value for JSON.
   * @param ref id of the request
   */
  errorBody(error: AppError, ref: string): unknown
}

/** Replies of the service API: JSON that no browser shows as a page and no proxy caches. */
export const apiReplies = {
  headers: { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' },
  errorType: 'application/json; charset=utf-8',
  errorBody: ({ code, message, details }, ref) => ({ code, message, ...(details ? { details } : {}), ref }),
} as const satisfies Replies

/** Header fields for an app whose replies a browser shows as pages. */
export const pageHeaders = {
  'strict-transport-security': 'max-age=63072000',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const
