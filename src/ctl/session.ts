import { isDeepStrictEqual } from 'node:util'
import { readPrivate, removePrivate, writePrivate, withLock } from './folder.ts'
import { toFailure, type Reply } from './reply.ts'
import type { HostTarget } from './target.ts'

/** A session, as stored in its file. */
export interface Session {
  readonly user: string
  /** The secrets of the session, by their names in the reply of the login. */
  readonly tokens: Readonly<Record<string, string>>
  /** Receipt of the tokens, milliseconds since 1970; absent in files of earlier versions. */
  readonly since?: number
}

/** A request without a session. */
export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** Authentication of the users of an API. */
export interface SessionProtocol {
  /** The header fields that make a request part of the session. */
  headers(session: Session): Readonly<Record<string, string>>
  /** Whether the tokens have to be renewed before they are used. */
  isDue(session: Session, now: number): boolean
  /** Asks for new tokens; `undefined` where there is no way but a login. */
  renewal(session: Session): PlainRequest | undefined
  /** The tokens of the reply to a renewal. @throws Failure for another reply */
  tokensOf(reply: Reply): Session['tokens']
  /** Ends the session, as a request of it; `undefined` where only the tokens are removed here. */
  end(session: Session): PlainRequest | undefined
}

/** Sends a request without a session. */
export type SendPlain = (method: string, path: string, body: unknown) => Promise<Reply>

/** The session on a host; several invocations share it. */
export interface Sessions {
  read(): Session | undefined
  /** To be called before the password prompt. @throws Failure if tokens could not be stored */
  prepare(): Promise<void>
  put(session: Session): Promise<void>
  /** @returns whether there was a session */
  remove(): Promise<boolean>
  /**
   * Replaces refused or old tokens: the session with valid ones, or `undefined` when the session has ended.
   * A renewal token is valid once: of two invocations the second uses the tokens that the first has received.
   */
  renew(refused: Session, send: SendPlain): Promise<Session | undefined>
}

export function createSessions(
  { sessionFile, lockFile }: HostTarget,
  protocol: Pick<SessionProtocol, 'renewal' | 'tokensOf'>,
): Sessions {
  const read = () => readPrivate(sessionFile) as Session | undefined
  const write = (session: Session) => writePrivate(sessionFile, { ...session, since: Date.now() })
  return {
    read,
    prepare: () => withLock(lockFile, async () => undefined),
    put: (session) => withLock(lockFile, async () => write(session)),
    remove: () => withLock(lockFile, async () => removePrivate(sessionFile)),
    renew: (refused, send) =>
      withLock(lockFile, async () => {
        const present = read()
        if (!present || !isDeepStrictEqual(present.tokens, refused.tokens)) return present
        const request = protocol.renewal(present)
        if (request === undefined) return undefined
        const reply = await send(request.method, request.path, request.body)
        if (reply.status === 401) {
          removePrivate(sessionFile)
          return undefined
        }
        if (reply.status !== 200) throw toFailure(reply)
        const session = { ...present, tokens: protocol.tokensOf(reply) }
        write(session)
        return session
      }),
  }
}
