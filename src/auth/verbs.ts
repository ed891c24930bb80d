import Type from 'typebox'
import { defineOwnVerb, defineProgramVerb } from '../verbs/verb.ts'
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

/** Gives an account the keys that it has set itself, in a file of its home, with the rights of the account; without any it takes them away. */
export const setSshKeys = defineOwnVerb({
  name: 'set-ssh-keys',
  role: 'viewer',
  input: Type.Object(
    { userName: text, keys: Type.Array(Type.String({ maxLength: 8_192 }), { maxItems: 64 }) },
    { additionalProperties: false },
  ),
  unit: {
    description: 'SSH keys of an account',
    timeoutMs: 60_000,
    // It becomes the account, and else reads who that is (NSS) and which file sshd reads.
    properties: [
      'CapabilityBoundingSet=CAP_SETUID CAP_SETGID',
      ...['NoNewPrivileges=yes', 'ProtectSystem=full', 'PrivateDevices=yes', 'PrivateTmp=yes'],
      ...['ProtectClock=yes', 'ProtectControlGroups=yes', 'ProtectKernelLogs=yes'],
      ...['ProtectKernelModules=yes', 'ProtectKernelTunables=yes'],
      ...['RestrictRealtime=yes', 'RestrictNamespaces=yes'],
    ],
  },
  audit: ({ userName, keys }) => `give ${userName} ${keys.length} SSH keys of its own`,
  load: async () => (await import('./place-keys.ts')).placeAccountKeys,
})
