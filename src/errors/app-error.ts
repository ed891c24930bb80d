import { errorCodes, type ErrorCode } from './codes.ts'

/** What a client may learn beside code and message. */
export interface AppErrorOptions {
  /** Additional facts for programs, for example `{ field: 'username' }`. Goes over the wire. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Seconds for the `Retry-After` header. */
  readonly retryAfterSec?: number
  /** The reason underneath; logged, never sent. */
  readonly cause?: unknown
}

/** The one error class a room throws on purpose; everything else becomes a 500 without internals. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly retryAfterSec: number | undefined

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.details = options.details
    this.retryAfterSec = options.retryAfterSec
  }

  /** The HTTP status that belongs to the code. */
  get status(): number {
    return errorCodes[this.code].status
  }
}
