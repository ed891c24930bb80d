import Type from 'typebox'
import { defineProgramVerb } from '../verbs/verb.ts'
import { pamtesterArguments } from './pam.ts'

const text = Type.String({ maxLength: 4_096 })

/** Changes the password of an account under the policy of the site; PAM proves the old one. */
export const changePassword = defineProgramVerb({
  name: 'change-password',
  role: 'viewer',
  input: Type.Object(
    { userName: text, address: text, password: text, newPassword: text },
    { additionalProperties: false },
  ),
  unit: {
    description: 'change of a password',
    timeoutMs: 30_000,
    // Modules of the site may need anything: a directory, a home, a keyring.
    properties: ['ProtectKernelModules=yes', 'ProtectKernelLogs=yes', 'ProtectControlGroups=yes'],
  },
  audit: ({ userName }) => `change the password of ${userName}`,
  command: ({ userName, address, password, newPassword }, { pam }) => ({
    program: pam.program,
    args: pamtesterArguments(pam.service, { userName, address }, 'chauthtok(PAM_CHANGE_EXPIRED_AUTHTOK)'),
    input: `${password}\n${newPassword}\n${newPassword}\n`,
  }),
  read: (result) => result,
})
