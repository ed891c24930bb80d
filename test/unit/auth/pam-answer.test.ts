import { describe, expect, it } from 'vitest'
import { parseRefusal, parseVerdict } from '../../../src/auth/pam.ts'

// Captured from pamtester 0.1.2 on Debian 12 with LC_ALL=C.
const wrong = 'Password: pamtester: Authentication failure\n'
const mustChange =
  'Password: You are required to change your password immediately (administrator enforced).\n' +
  'pamtester: Authentication token is no longer valid; new one required\n'
const accountExpired =
  'Password: Your account has expired; please contact your system administrator.\npamtester: Authentication failure\n'
const tooShort =
  'Current password: New password: Retype new password: You must choose a longer password.\n' +
  'New password: Password change has been aborted.\npamtester: Authentication token manipulation error\n'

describe('parseVerdict', () => {
  it('parseVerdict accepts exit code 0, whatever was written', () => {
    expect(parseVerdict(0, wrong)).toEqual({ kind: 'accepted' })
  })

  it.each([
    ['a wrong password', wrong, 'Authentication failure'],
    [
      'an expired account, with the words of its module',
      accountExpired,
      'Your account has expired; please contact your system administrator. Authentication failure',
    ],
    ['access.conf and faillock', 'Password: pamtester: Permission denied\n', 'Permission denied'],
    [
      'a locked tally',
      'The account is locked due to 3 failed logins.\n(10 minutes left to unlock)\nPassword: pamtester: Authentication failure\n',
      'The account is locked due to 3 failed logins. (10 minutes left to unlock) Authentication failure',
    ],
    [
      'an unknown user',
      'Password: pamtester: User not known to the underlying authentication module',
      'User not known to the underlying authentication module',
    ],
  ])('parseVerdict refuses %s', (_what, stderr, reason) => {
    expect(parseVerdict(1, stderr)).toEqual({ kind: 'refused', reason })
  })

  it.each([
    ['chage -d 0', mustChange],
    ['an aged password of a stack without a default', 'Password: pamtester: Authentication token expired\n'],
  ])('parseVerdict recognises an expired password: %s', (_what, stderr) => {
    expect(parseVerdict(1, stderr).kind).toBe('password-expired')
  })

  it.each([
    ['a missing module', 'Password: pamtester: Module is unknown\n'],
    ['a system error', 'pamtester: System error\n'],
    ['a module without the function', 'pamtester: Symbol not found\n'],
    ['silence', ''],
    ['words without an end', 'Password: '],
    ['a library that is missing', 'pamtester-x: error while loading shared libraries: libpam.so.0\n'],
  ])('parseVerdict calls the stack unusable for %s', (_what, stderr) => {
    expect(parseVerdict(1, stderr).kind).toBe('unusable')
  })

  it('parseVerdict calls the stack unusable when a signal ended the child', () => {
    expect(parseVerdict(undefined, '').kind).toBe('unusable')
  })

  it.each([
    ['in a message before it', `pamtester: Authentication token expired\n${wrong}`],
    [
      'in a prompt that names the user',
      'Password for pamtester: Authentication token expired: pamtester: Authentication failure\n',
    ],
    ['as the beginning of another text', 'Password: pamtester: Authentication token expired, or not\n'],
  ])('parseVerdict is not deceived by the text of an expired password %s', (_what, stderr) => {
    expect(parseVerdict(1, stderr).kind).toBe('refused')
  })
})

describe('parseRefusal', () => {
  it.each([
    ['too short', tooShort, 'You must choose a longer password.'],
    [
      'the same password',
      'Current password: New password: Retype new password: The password has not been changed.\nNew password: Password change has been aborted.\npamtester: Authentication token manipulation error\n',
      'The password has not been changed.',
    ],
    [
      'minimum age',
      'Current password: You must wait longer to change your password.\npamtester: Authentication token manipulation error\n',
      'You must wait longer to change your password.',
    ],
    [
      'pam_pwquality',
      'Current password: New password: BAD PASSWORD: The password is shorter than 8 characters\npamtester: Authentication token manipulation error\n',
      'BAD PASSWORD: The password is shorter than 8 characters',
    ],
    [
      'a wrong old password: only the result is left',
      'Current password: pamtester: Authentication failure\n',
      'Authentication failure',
    ],
    ['silence', '', 'the password was not changed'],
  ])('parseRefusal returns the text of the modules: %s', (_what, stderr, words) => {
    expect(parseRefusal(stderr)).toBe(words)
  })
})
