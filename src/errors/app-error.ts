import type { ErrorKind } from './define-errors.ts'

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

  /** The HTTP status of its kind. */
  get status(): number {
    return this.kind.status
  }
}
