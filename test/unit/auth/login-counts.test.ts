import { expect, it } from 'vitest'
import { countLogins, type Login, type LoginRequest } from '../../../src/auth/login.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { authErrors } from '../../../src/auth/codes.ts'
import { credentialErrors } from '../../../src/credentials/codes.ts'

const request = {} as LoginRequest
const errors = { ...authErrors, ...credentialErrors }

function endingWith(error?: Error) {
  const end = () => (error ? Promise.reject(error) : Promise.resolve({} as never))
  const { login, figures } = countLogins({ login: end, check: end } satisfies Login)
  const counted = () => figures().filter(({ count }) => count > 0)
  return { login, figures, counted }
}

it('the counts have every outcome from the start, so that a first failure is a change', () => {
  const { figures } = endingWith()
  expect(figures()).toHaveLength(12)
  expect(figures().every(({ count }) => count === 0)).toBe(true)
})

it('logins and checks for a password change are counted apart, and their results passed on', async () => {
  const { login, counted } = endingWith()
  expect(await login.login(request, false)).toEqual({})
  await login.login(request, false)
  await login.check(request, 'password change')
  expect(counted()).toEqual([
    { purpose: 'login', outcome: 'accepted', count: 2 },
    { purpose: 'password-change', outcome: 'accepted', count: 1 },
  ])
})

it.each([
  ['InvalidCredentials', 'refused'],
  ['OldPasswordWrong', 'refused'],
  ['PasswordExpired', 'expired'],
  ['TooManyAttempts', 'limited'],
  ['TooManyLogins', 'busy'],
  ['PamUnavailable', 'failed'],
] as const satisfies [keyof typeof errors, string][])(
  '%s counts as %s, and is thrown again',
  async (code, outcome) => {
    const error = new AppError(errors[code], 'no')
    const { login, counted } = endingWith(error)
    await expect(login.login(request, false)).rejects.toBe(error)
    expect(counted()).toEqual([{ purpose: 'login', outcome, count: 1 }])
  },
)

it('an unexpected error counts as failed', async () => {
  const { login, counted } = endingWith(new Error('disk'))
  await expect(login.check(request, 'x')).rejects.toThrow('disk')
  expect(counted()).toEqual([{ purpose: 'password-change', outcome: 'failed', count: 1 }])
})
