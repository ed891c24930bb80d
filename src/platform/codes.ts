import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the platform. */
export const platformErrors = defineErrors({
  SignInRefused: {
    status: 401,
    meaning:
      'The sign-in was refused. A wrong password, an unknown user and a user without a password all get this same answer.',
    action: 'Try again, or ask an administrator for a new link.',
  },
  LinkRefused: {
    status: 400,
    meaning: 'The link to set a password is unknown, used, or older than a day.',
    action: 'Ask an administrator for a new link.',
  },
  UserExists: {
    status: 409,
    meaning: 'There is a user with this e-mail address.',
    action: 'Use that user, or another address.',
  },
  LastAdministrator: {
    status: 409,
    meaning: 'The tenant would be left without an administrator.',
    action: 'Make another user an administrator first.',
  },
})
