/** Why a question over the bus has no answer. */
export type FailureReason = 'not-reached' | 'refused' | 'timed-out' | 'malformed' | 'too-large'

/** A question over the bus has no answer; says in one line who was asked and why there is none. */
export class BusFailed extends Error {
  override readonly name = 'BusFailed'
  readonly reason: FailureReason
  /** Of the error that came as an answer, for example `org.freedesktop.DBus.Error.UnknownObject`. */
  readonly errorName: string | undefined

  /** @param service the name on the bus, for example `org.freedesktop.resolve1` */
  constructor(service: string, { reason, message, errorName }: NoAnswer) {
    super(`${service}: ${reason} (${message})`)
    this.reason = reason
    this.errorName = errorName
  }
}

/** Why there is no answer, where it is not known yet which questions that concerns. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly reason: FailureReason
  readonly errorName: string | undefined

  constructor(reason: FailureReason, detail: string, errorName?: string) {
    super(detail)
    this.reason = reason
    this.errorName = errorName
  }
}
