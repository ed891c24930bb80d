import { documentPath } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Errors of logins and passwords. */
export const authErrors = defineErrors({
  InvalidCredentials: {
    status: 401,
    meaning:
      'The login was refused. A wrong password and an unknown, locked or expired account all get this same answer.',
    action: 'Try again; the reason is in the journal of the host.',
  },
  PasswordExpired: {
    status: 401,
    meaning: 'The password was right but has expired.',
    action: 'POST /v1/users/default/password/reset with username, oldPassword and newPassword.',
  },
  TooManyLogins: {
    status: 429,
    meaning: 'Too many logins are being checked at the same time.',
    action: 'Wait for the seconds in Retry-After.',
  },
  PasswordRefused: {
    status: 400,
    meaning: "The host's password policy refused the new password; the message contains the text of PAM.",
    action: 'Choose another password.',
  },
  OldPasswordWrong: {
    status: 400,
    meaning: 'The old password is not the current one.',
    action: 'Correct oldPassword.',
  },
  LoginTooOld: {
    status: 403,
    meaning:
      'SSH keys outlive a session, so a login of the last five minutes, or the password, has to prove who sets them.',
    action: 'Log in again, or send the password in the body.',
  },
  SshKeysRefused: {
    status: 409,
    meaning: 'The keys cannot be placed in a file of the account; the message says why and what to do.',
    action: 'Do what the message says, then try again.',
  },
  PamUnavailable: {
    status: 500,
    meaning: "The host's PAM stack gave no answer.",
    action: `See journalctl -u edgehostd and ${documentPath('operations.md')}, "When no user can log in".`,
  },
  PasswordChangeUnavailable: {
    status: 503,
    meaning: 'The transient unit that changes passwords could not be started.',
    action: 'See journalctl -u edgehostd -p warning, or use passwd on the console.',
  },
})
