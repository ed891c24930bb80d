import type { Static } from 'typebox'
import type { LoginReply, UserToken } from '../auth/schemas.ts'
import { readPrivate, removePrivate, writePrivate } from './folder.ts'
import { withLock } from './lock.ts'
import { parseBody, toFailure, type Reply } from './reply.ts'
import type { HostTarget } from './target.ts'

export type Tokens = Static<typeof UserToken>
export const tokenFields = ['Authorization', 'RefreshToken'] as const
export type LoginAnswer = Static<typeof LoginReply>

/** A login that lasts, as it stands in its file. */
export interface Session {
  readonly user: string
  readonly tokens: Tokens
}

/** Asks without a session. */
export type SendPlain = (method: string, path: string, body: unknown) => Promise<Reply>

/** The session on a host; several invocations share it. */
export interface Sessions {
  read(): Session | undefined
  /** @throws Failure where tokens could not be kept; for before a password is asked for */
  prepare(): Promise<void>
  keep(session: Session): Promise<void>
  /** @returns whether there was one */
  forget(): Promise<boolean>
  /**
   * The session with a good access token in the place of one that is refused; undefined when it has ended.
   * A refresh token is good once: of two invocations the second finds what the first has got.
   */
  renew(refused: Session, send: SendPlain): Promise<Session | undefined>
}

export function createSessions({ sessionFile, lockFile }: HostTarget): Sessions {
  const read = () => readPrivate(sessionFile) as Session | undefined
  return {
    read,
    prepare: () => withLock(lockFile, async () => undefined),
    keep: (session) => withLock(lockFile, async () => writePrivate(sessionFile, session)),
    forget: () => withLock(lockFile, async () => removePrivate(sessionFile)),
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
