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
  ProjectExists: {
    status: 409,
    meaning: 'There is a project with this name; upper and lower case are the same.',
    action: 'Use that project, or another name.',
  },
  ProjectNotFound: {
    status: 404,
    meaning: 'There is no project with this uid in which the caller has a role.',
    action: 'See GET /v1/projects, or ask an administrator for a role.',
  },
  KeyExists: {
    status: 409,
    meaning: 'There is an API key with this name; upper and lower case are the same.',
    action: 'Use another name.',
  },
  LastAdministrator: {
    status: 409,
    meaning: 'The tenant would be left without an administrator.',
    action: 'Make another user an administrator first.',
  },
})
