import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the check of a password, on hosts and on the platform. */
export const credentialErrors = defineErrors({
  TooManyAttempts: {
    status: 429,
    meaning: 'Too many failed logins for this user or from this address.',
    action: 'Wait for the seconds in Retry-After.',
  },
})

/** Errors of our own password hashes; hosts ask PAM instead. */
export const passwordErrors = defineErrors({
  TooManyPasswords: {
    status: 503,
    meaning: 'Too many passwords are being checked at the same time.',
    action: 'Wait for the seconds in Retry-After.',
  },
})
