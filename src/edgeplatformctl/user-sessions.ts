import type { Static } from 'typebox'
import type { UserToken } from '../platform/users/schemas.ts'
import { parseBody } from '../ctl/reply.ts'
import type { SessionProtocol } from '../ctl/session.ts'

export type Tokens = Pick<Static<typeof UserToken>, 'Authorization'>

// A token is valid for 15 minutes, and can be exchanged only while it is.
const oldMs = 300_000

/** Sessions on the platform: the token of a login, which is exchanged in time, or an API key. */
export const userSessions: SessionProtocol = {
  headers: ({ tokens: { Authorization, apiKey } }) =>
    apiKey === undefined ? { authorization: Authorization ?? '' } : { apiKey },
  // Also where the clock was set back.
  isDue: ({ tokens, since = 0 }, now) =>
    tokens.apiKey === undefined && !(now - since >= 0 && now - since < oldMs),
  renewal: ({ tokens: { Authorization } }) =>
    Authorization === undefined
      ? undefined
      : { method: 'GET', path: `/v1/auth/refresh/${encodeURIComponent(Authorization)}` },
  tokensOf: (reply) => ({ Authorization: parseBody<Tokens>(reply, ['Authorization']).Authorization }),
  end: ({ tokens: { Authorization } }) =>
    Authorization === undefined
      ? undefined
      : { method: 'POST', path: '/v1/users/auth/tokens/revoke', body: { tokens: [Authorization] } },
}
