import { dirname } from 'node:path'
import { defineOwnVerb, writesOnly } from '../verbs/verb.ts'
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
