import type { Static } from 'typebox'
import type { LoginReply, UserToken } from '../auth/schemas.ts'
import { readPrivate, removePrivate, writePrivate } from './folder.ts'
import { withLock } from './lock.ts'
import { parseBody, toFailure, type Reply } from './reply.ts'
import type { HostTarget } from './target.ts'

export type Tokens = Static<typeof UserToken>
export const tokenFields = ['Authorization', 'RefreshToken'] as const
export type LoginAnswer = Static<typeof LoginReply>

/** A session, as stored in its file. */
export interface Session {
  readonly user: string
  readonly tokens: Tokens
}

/** Sends a request without a session. */
export type SendPlain = (method: string, path: string, body: unknown) => Promise<Reply>

/** The session on a host; several invocations share it. */
export interface Sessions {
  read(): Session | undefined
  /** To be called before a password is asked for. @throws Failure if tokens could not be stored */
  prepare(): Promise<void>
  put(session: Session): Promise<void>
  /** @returns whether there was a session */
  remove(): Promise<boolean>
  /**
   * Replaces a refused access token: the session with a valid one, or `undefined` when the session has ended.
   * A refresh token is valid once: of two invocations the second uses the tokens that the first has received.
   */
  renew(refused: Session, send: SendPlain): Promise<Session | undefined>
}

export function createSessions({ sessionFile, lockFile }: HostTarget): Sessions {
  const read = () => readPrivate(sessionFile) as Session | undefined
  return {
    read,
    prepare: () => withLock(lockFile, async () => undefined),
    put: (session) => withLock(lockFile, async () => writePrivate(sessionFile, session)),
    remove: () => withLock(lockFile, async () => removePrivate(sessionFile)),
    renew: (refused, send) =>
      withLock(lockFile, async () => {
        const present = read()
        if (present?.tokens.Authorization !== refused.tokens.Authorization) return present
        const body = { refreshToken: present.tokens.RefreshToken }
        const reply = await send('POST', '/v1/users/default/token/renewal', body)
        if (reply.status === 401) {
          removePrivate(sessionFile)
          return undefined
        }
        if (reply.status !== 200) throw toFailure(reply)
        const session = { ...present, tokens: parseBody<Tokens>(reply, tokenFields) }
        writePrivate(sessionFile, session)
        return session
      }),
  }
}
