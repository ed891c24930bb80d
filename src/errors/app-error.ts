import type { ErrorKind } from './define-errors.ts'

/** Facts for a client in addition to code and message. */
export interface AppErrorOptions {
  /** Additional facts for programs, for example `{ field: 'username' }`. Sent to the client. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Seconds for the `Retry-After` header. */
  readonly retryAfterSec?: number
  /** The underlying error; logged, never sent. */
  readonly cause?: unknown
}

/** The only error class that a room throws on purpose; every other error becomes a 500 without internals. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly kind: ErrorKind
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly retryAfterSec: number | undefined

  constructor(kind: ErrorKind, message: string, options: AppErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.kind = kind
    this.details = options.details
    this.retryAfterSec = options.retryAfterSec
  }

  get code(): string {
    return this.kind.code
  }

  /** The HTTP status of the error. */
  get status(): number {
    return this.kind.status
  }
}
