import type { Static } from 'typebox'
import type { LoginReply, UserToken } from '../auth/schemas.ts'
import { parseBody } from '../ctl/reply.ts'
import type { SessionProtocol } from '../ctl/session.ts'

export type Tokens = Static<typeof UserToken>
export const tokenFields = ['Authorization', 'RefreshToken'] as const
export type LoginAnswer = Static<typeof LoginReply>

/** Sessions on a host: an access token, and a refresh token for when it is refused. */
export const hostSessions: SessionProtocol = {
  headers: ({ tokens }) => ({ authorization: tokens.Authorization ?? '' }),
  isDue: () => false,
  renewal: ({ tokens }) => ({
    method: 'POST',
    path: '/v1/users/default/token/renewal',
    body: { refreshToken: tokens.RefreshToken },
  }),
  tokensOf: (reply) => parseBody<Tokens>(reply, tokenFields),
  end: () => ({ method: 'POST', path: '/v1/users/default/logout' }),
}
