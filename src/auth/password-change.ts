import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Logger } from '../system/log.ts'
import { isPossiblePassword } from './credentials.ts'
import type { Login, LoginRequest, Refuse } from './login.ts'
import type { Pam } from './pam.ts'
import type { Sessions } from './sessions.ts'

export interface PasswordChangeOptions {
  readonly login: Login
  readonly pam: Pam
  readonly sessions: Sessions
  readonly log: Logger
}

export interface PasswordChange {
  /**
   * Changes a password and ends all sessions of the user. The old password is checked first, with the guard of logins,
   * so that this does not bypass the counters.
   * @param isLoggedIn a wrong old password is then a 400, otherwise the 401 of a login
   * @returns the number of ended sessions
   * @throws AppError BadRequest, OldPasswordWrong, InvalidCredentials, PasswordRefused and those of a login
   */
  change(request: LoginRequest & { readonly newPassword: string }, isLoggedIn: boolean): Promise<number>
}

export function createPasswordChange({ login, pam, sessions, log }: PasswordChangeOptions): PasswordChange {
  return {
    async change({ newPassword, ...request }, isLoggedIn) {
      if (!isPossiblePassword(newPassword)) {
        throw new AppError(
          generalErrors.BadRequest,
          'newPassword must have at most 511 bytes and no NUL, CR or LF',
          {
            details: { field: 'newPassword' },
          },
        )
      }
      const account = await login.check(request, 'password change', isLoggedIn ? oldPasswordWrong : undefined)
      const words = await pam.changePassword({ ...request, userName: account.name, newPassword })
      if (words !== undefined)
        throw new AppError(authErrors.PasswordRefused, words, { details: { field: 'newPassword' } })
      const ended = sessions.list().filter(({ userName }) => userName === account.name)
      sessions.end(ended, 'password changed')
      log.info({ ref: request.ref, user: account.name, address: request.address }, 'password changed')
      return ended.length
    },
  }
}

const oldPasswordWrong: Refuse = (words) =>
  new AppError(
    authErrors.OldPasswordWrong,
    words ? `oldPassword is wrong: ${words}` : 'oldPassword is wrong',
    {
      details: { field: 'oldPassword' },
    },
  )
