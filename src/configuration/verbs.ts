import { dirname } from 'node:path'
import { Type } from 'typebox'
import { defineOwnVerb, writesOnly } from '../verbs/verb.ts'
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
