// Failures of a request to another server, beside the errors of the system.

/** A proxy answered CONNECT with another status than 200. */
export class TunnelRefused extends Error {
  override readonly name = 'TunnelRefused'
  readonly status: number

  constructor(status: number) {
    super(`the proxy answered CONNECT with ${status}`)
    this.status = status
  }
}

/** The proxy itself cannot be reached. */
export class ProxyUnreachable extends Error {
  override readonly name = 'ProxyUnreachable'
}

/** The certificate is not the pinned one. */
export class FingerprintDiffers extends Error {
  override readonly name = 'FingerprintDiffers'
  /** `AA:BB:…` of the certificate that was shown. */
  readonly shown: string

  constructor(shown: string) {
    super(`the fingerprint is ${shown}`)
    this.shown = shown
  }
}

/** A reply that cannot be used: a redirect, one that is too long, or one that is not JSON. */
export class ForeignReply extends Error {
  override readonly name = 'ForeignReply'
}

/** A reply that is longer than the caller takes. */
export class ReplyTooLong extends ForeignReply {
  constructor(longest: number) {
    super(`its reply is longer than ${longest} bytes`)
  }
}

/** No reply within the time limit. */
export class NoReply extends Error {
  override readonly name = 'NoReply'
}
