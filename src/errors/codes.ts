import { byProgram, documentPath, program } from '../base/program.ts'
import { defineErrors } from './define-errors.ts'

/** Errors that any room may return. */
export const generalErrors = defineErrors({
  BadRequest: {
    status: 400,
    meaning: 'The request does not follow the schema of the endpoint; the message names the field.',
    action: 'Correct the named field.',
  },
  Unauthenticated: {
    status: 401,
    meaning: 'The token is missing, altered, expired or revoked.',
    action: 'Log in again or renew the token.',
  },
  Forbidden: {
    status: 403,
    meaning: 'The role of this user does not allow the operation.',
    action: byProgram({
      host: 'Ask a member of an administrators group of the host.',
      platform: 'Ask an administrator of the tenant, or of the project, for the role.',
    }),
  },
  NotFound: {
    status: 404,
    meaning: 'There is nothing at this path or under this id.',
    action: `See ${documentPath(byProgram({ host: 'api.md', platform: 'platform-api.md' }))} or GET /openapi.json.`,
  },
  PreconditionFailed: {
    status: 412,
    meaning: 'If-Match names another state than the present one: it was changed since it was read.',
    action: 'Read it again, and change that.',
  },
  PayloadTooLarge: {
    status: 413,
    meaning: 'The body is larger than the endpoint accepts.',
    action: 'Send less.',
  },
  NotReady: {
    status: 503,
    meaning: `The daemon is starting, stopping, or cannot do its work now. ${byProgram({ host: 'healthz and readyz return', platform: '/v1/health/ready returns' })} it, and so does an upload that a stop of the daemon interrupts.`,
    action: `Wait; the journal says what is missing. ${byProgram({ host: `See ${documentPath('operations.md')}, "Health".`, platform: 'See edgeplatformctl status.' })}`,
  },
  InsufficientStorage: {
    status: 507,
    meaning:
      'Nothing was changed: the disk is full or cannot be written, so the change could not be recorded. Logins and reads still work.',
    action: `Make room in the state folder (df), or see journalctl -u ${program.daemon} -p err.`,
  },
  StorageFull: {
    status: 507,
    meaning: 'There is no room on the disk for the upload; nothing of it was kept.',
    action: 'Make room (df says where), or send less.',
  },
  Internal: {
    status: 500,
    meaning: 'The daemon failed; the ref of the reply is also in the journal line that names the cause.',
    action: `Find that line with journalctl -u ${program.daemon} | grep REF.`,
  },
})
