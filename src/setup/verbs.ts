import Type from 'typebox'
import { defineOwnVerb, writesOnly } from '../verbs/verb.ts'

/** Gives the host another name, for now and for every boot. */
export const setHostName = defineOwnVerb({
  name: 'set-host-name',
  role: 'admin',
  input: Type.Object(
    { hostName: Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z0-9][a-z0-9.-]*$' }) },
    { additionalProperties: false },
  ),
  unit: {
    description: 'name of the host',
    timeoutMs: 60_000,
    properties: [...writesOnly('/etc'), 'ProtectHome=yes'],
  },
  audit: ({ hostName }) => `give the host the name ${hostName}`,
  load: async () => (await import('./place-host-name.ts')).placeHostName,
})

/** Gives the time service of the host its servers; without any takes those away that were given so. */
export const setTimeServers = defineOwnVerb({
  name: 'set-time-servers',
  role: 'admin',
  input: Type.Object(
    {
      servers: Type.Array(Type.String({ maxLength: 253, pattern: '^[A-Za-z0-9.:-]+$' }), { maxItems: 32 }),
      /** Where the daemon keeps what was placed. */
      note: Type.String({ pattern: '^/[^\\0\\n]{1,4095}$' }),
    },
    { additionalProperties: false },
  ),
  unit: {
    description: 'time servers of the host',
    timeoutMs: 120_000,
    // It writes below /etc and in the state folder, and asks systemd and chrony over their sockets.
    properties: [
      ...['ProtectHome=yes', 'PrivateDevices=yes', 'NoNewPrivileges=yes', 'ProtectControlGroups=yes'],
      ...['ProtectKernelLogs=yes', 'ProtectKernelModules=yes', 'ProtectKernelTunables=yes'],
      ...['RestrictRealtime=yes', 'RestrictNamespaces=yes'],
    ],
  },
  audit: ({ servers }) => `give the host ${servers.length} time servers`,
  load: async () => (await import('./place-time-servers.ts')).placeTimeServers,
})
