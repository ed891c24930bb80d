import Type from 'typebox'
import { dirname } from 'node:path'
import { configurationFolder, mainConfiguration } from './schemas.ts'
import { defineOwnVerb, defineProgramVerb, VerbRefused, writesOnly } from '../verbs/verb.ts'

/** Removes the files of an administrator that configure the daemon, and puts config.yaml back as the package has it. */
export const removeConfiguration = defineOwnVerb({
  name: 'remove-configuration',
  role: 'admin',
  input: Type.Object({}, { additionalProperties: false }),
  unit: {
    description: 'removal of the configuration',
    timeoutMs: 60_000,
    properties: writesOnly(dirname(configurationFolder)),
  },
  audit: () => `remove the files in ${configurationFolder}, and put ${mainConfiguration} back`,
  load: async () => {
    const { putConfigurationBack } = await import('./remove-configuration.ts')
    return () => putConfigurationBack()
  },
})

/** Starts the daemon anew, as after a change of its configuration; the port stays open. */
export const restartDaemon = defineProgramVerb({
  name: 'restart-daemon',
  role: 'admin',
  input: Type.Object({}, { additionalProperties: false }),
  unit: {
    description: 'restart of edgehostd',
    timeoutMs: 60_000,
    properties: ['ProtectSystem=strict', 'ProtectHome=yes', 'PrivateDevices=yes', 'NoNewPrivileges=yes'],
  },
  audit: () => 'restart edgehostd',
  command: () => ({ program: 'systemctl', args: ['restart', '--no-block', 'edgehostd.service'] }),
  read({ exitCode, stderr }) {
    if (exitCode === 0 || exitCode === undefined) return
    throw new VerbRefused(`systemctl ended with ${exitCode}: ${stderr.trim() || 'without a message'}`)
  },
})

/** Reboots the host, or turns it off, in order: logind gives the kubelet and other holders of delaying locks their time. */
export const stopHost = defineProgramVerb({
  name: 'stop-host',
  role: 'admin',
  input: Type.Object(
    {
      action: Type.Enum(['reboot', 'shutdown']),
      message: Type.String({ maxLength: 300 }),
      isForced: Type.Boolean(),
    },
    { additionalProperties: false },
  ),
  unit: {
    description: 'stop of the host',
    timeoutMs: 60_000,
    // systemctl only asks systemd and logind, over their sockets.
    properties: [
      'ProtectSystem=strict',
      'ProtectHome=yes',
      'PrivateDevices=yes',
      'ProtectKernelModules=yes',
      'ProtectKernelTunables=yes',
      'NoNewPrivileges=yes',
    ],
  },
  audit: ({ action, message }) => `${action} of the host${message === '' ? '' : `: ${message}`}`,
  command: ({ action, message, isForced }) => ({
    program: 'systemctl',
    args: [
      action === 'reboot' ? 'reboot' : 'poweroff',
      // Without logind systemd would wait for the end of the job, and of this program with it.
      '--no-block',
      // Ignores locks that refuse a stop; known to every systemd, unlike --check-inhibitors=.
      ...(isForced ? ['-i'] : []),
      // A wall message of logind, and a line of the journal.
      ...(message === '' ? [] : [`--message=${message}`]),
    ],
  }),
  read({ exitCode, stderr }) {
    // A signal ends it where the host goes at once.
    if (exitCode === 0 || exitCode === undefined) return
    throw new VerbRefused(
      `systemctl ended with ${exitCode}: ${stderr.trim().split('\n').at(-1) || 'without a message'}; see: systemd-inhibit --list, systemctl list-jobs`,
    )
  },
})
