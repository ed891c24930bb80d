import { AppError } from '../errors/app-error.ts'
import type { credentialErrors } from '../credentials/codes.ts'
import type { authErrors } from './codes.ts'
import type { Login } from './login.ts'

/**
 * The outcome of an attempt. `refused`: the password is wrong, or the account may not log in. `expired`: the password
 * is right, but must be changed first. `limited`: too many earlier failures. `busy`: too many logins at once. `failed`:
 * PAM or the directory did not answer.
 */
export type LoginOutcome = 'accepted' | 'refused' | 'expired' | 'limited' | 'busy' | 'failed'

export interface LoginFigures {
  /** Why the password was checked. */
  readonly purpose: 'login' | 'password-change'
  readonly outcome: LoginOutcome
  readonly count: number
}

const outcomes = {
  InvalidCredentials: 'refused',
  OldPasswordWrong: 'refused',
  PasswordExpired: 'expired',
  TooManyAttempts: 'limited',
  TooManyLogins: 'busy',
} as const satisfies Partial<Record<keyof (typeof authErrors & typeof credentialErrors), LoginOutcome>>

const none = () => ({ accepted: 0, refused: 0, expired: 0, limited: 0, busy: 0, failed: 0 })

/** Counts the outcomes of login attempts. */
export function countLogins(login: Login): { login: Login; figures: () => readonly LoginFigures[] } {
  const counts = { login: none(), 'password-change': none() }

  async function count<T>(purpose: LoginFigures['purpose'], result: Promise<T>): Promise<T> {
    try {
      const value = await result
      counts[purpose].accepted += 1
      return value
    } catch (error) {
      counts[purpose][outcomeOf(error)] += 1
      throw error
    }
  }

  return {
    login: {
      login: (...request) => count('login', login.login(...request)),
      check: (...request) => count('password-change', login.check(...request)),
    },
    figures: () =>
      (['login', 'password-change'] as const).flatMap((purpose) =>
        Object.entries(counts[purpose]).map(([outcome, count]) => ({
          purpose,
          outcome: outcome as LoginOutcome,
          count,
        })),
      ),
  }
}

function outcomeOf(error: unknown): LoginOutcome {
  const code = error instanceof AppError ? error.code : ''
  return code in outcomes ? outcomes[code as keyof typeof outcomes] : 'failed'
}
