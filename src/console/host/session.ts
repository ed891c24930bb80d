import { get } from '../shared/request.ts'
import type { Pair, SessionProtocol, User } from '../shared/session.ts'

const users = '/v1/users/default'

/** Sessions of a host: an account of its operating system, and a pair of tokens without cookies. */
export const hostSession: SessionProtocol = {
  logIn: (username, password) => ({
    path: `${users}/login?setCookie=false`,
    method: 'POST',
    body: { username, password },
    // PAM answers in its own time, as where a directory is asked.
    timeoutMs: 60_000,
  }),
  renew: (refreshToken) => ({ path: `${users}/token/renewal`, method: 'POST', body: { refreshToken } }),
  logOut: () => ({ path: `${users}/logout`, method: 'POST' }),
  // A login wraps the pair, a renewal does not.
  pairOf(reply) {
    const { Token, ...pair } = reply as Pair & { readonly Token?: Pair }
    return Token ?? pair
  },
  readUser: () => get<User>('/v1/users/current'),
  wrongCode: 'InvalidCredentials',
  replacePassword: (username, oldPassword, newPassword) => ({
    path: `${users}/password/reset`,
    method: 'POST',
    body: { username, oldPassword, newPassword },
    timeoutMs: 60_000,
  }),
}
