import { dirname } from 'node:path'
import { Type } from 'typebox'
import { parseJson } from '../base/json.ts'
import { defineOwnVerb, defineProgramVerb, VerbRefused, writesOnly } from '../verbs/verb.ts'
import { StageStep } from './stage-steps.ts'
import { authorityFolder, environmentFile, lockFile, Placement, trustFolder } from './placement.ts'

/** Puts the proxy and the authorities of this host in place. */
export const placeConfiguration = defineOwnVerb({
  name: 'place-configuration',
  role: 'admin',
  input: Placement,
  unit: {
    description: 'configuration of proxy and authorities',
    timeoutMs: 300_000,
    properties: [
      ...writesOnly(
        dirname(environmentFile),
        // A minimal host has no authorities, and no folder of them.
        `-${dirname(trustFolder)}`,
        `-${dirname(authorityFolder)}`,
        dirname(lockFile),
      ),
      'PrivateTmp=yes',
      'ProtectHome=yes',
    ],
  },
  audit: ({ environment, certificates }) =>
    `put ${environment === '' ? 'no proxy' : 'a proxy'} and ${certificates.length} authorities in place`,
  load: async () => (await import('./place.ts')).placeFiles,
})

/** Runs the stages of user data: whatever an administrator has sent, where root's configuration lets them. */
export const runStages = defineOwnVerb({
  name: 'run-stages',
  role: 'admin',
  input: Type.Object({ steps: Type.Array(StageStep, { maxItems: 200 }) }, { additionalProperties: false }),
  unit: {
    description: 'stages of user data',
    timeoutMs: 1_800_000,
    // They are root's own commands, which may do anything but with the kernel's log.
    properties: ['ProtectKernelLogs=yes'],
  },
  audit: ({ steps }) => `run ${steps.length} steps of stages as root`,
  load: async () => (await import('./run-stages.ts')).runStages,
})

/** What a platform has, or would make, of this host. */
export interface LinkRecord {
  readonly name: string
  readonly projectName: string
}

/** `platform.cjs` could not link this host; the check at which it ended says whose fault it is. */
export class LinkRefused extends VerbRefused {
  readonly isOfToken: boolean

  constructor(message: string, isOfToken: boolean) {
    super(message)
    this.isOfToken = isOfToken
  }
}

/** Links this host to a platform as `edgehostctl platform connect` does, but for the restart; `check` only looks whether that can be done. */
export const linkToPlatform = defineProgramVerb({
  name: 'link-to-platform',
  role: 'admin',
  input: Type.Object(
    {
      action: Type.Enum(['check', 'write']),
      url: Type.String({ pattern: '^[^\\0\\n]{1,500}$' }),
      token: Type.String({ maxLength: 1_000 }),
      proxy: Type.String({ maxLength: 4_096 }),
      authorities: Type.Array(Type.String({ maxLength: 262_144 }), { maxItems: 1_000 }),
    },
    { additionalProperties: false },
  ),
  unit: {
    description: 'link to the platform',
    // Five checks of 20 s, and the files.
    timeoutMs: 150_000,
    // It reads and writes the configuration of the daemon, wherever that is, and asks the platform.
    properties: [
      ...['ProtectHome=yes', 'PrivateTmp=yes', 'PrivateDevices=yes', 'NoNewPrivileges=yes'],
      ...['ProtectControlGroups=yes', 'ProtectKernelLogs=yes', 'ProtectKernelModules=yes'],
      ...['ProtectKernelTunables=yes', 'ProtectClock=yes', 'RestrictRealtime=yes'],
    ],
  },
  audit: ({ action, url }) =>
    action === 'check'
      ? `check whether this host can be linked to the platform ${url}`
      : `link this host to the platform ${url}`,
  command: ({ action, ...order }, { platformProgram, support }) => ({
    program: process.execPath,
    args: [platformProgram, action, `--socket=${support.socket}`, '--output=json'],
    input: JSON.stringify(order),
  }),
  read({ exitCode, stdout, stderr }): LinkRecord {
    const record = exitCode === 0 ? (parseJson(stdout.trim()) as LinkRecord | undefined) : undefined
    if (record !== undefined) return record
    // Progress comes before it, a line for each check.
    const message = /^edgehostctl: (.*)/ms.exec(stderr)?.[1] ?? stderr.trim().split('\n').at(-1) ?? ''
    throw new LinkRefused(
      message.replaceAll(/\s*\n\s*/g, ' ').trim() || `the program ended with ${exitCode ?? 'a signal'}`,
      /^ *TLS: /m.test(stderr),
    )
  },
})
