import type { Declaration } from '../root/room.ts'
import { configurationErrors } from './codes.ts'

/** Proxy and authorities of this host. */
export const about = {
  errors: configurationErrors,
  attention: {
    ConfigurationFailed:
      'The proxy or the authorities of this host could not be put in place; the message says why. It is tried again.',
  },
  tags: { configuration: 'Proxy and certificate authorities of this host.' },
  support: [
    { name: 'configurations.json', path: '/v1/edge-mgmt/edgehosts/current/configurations' },
    { name: 'configurations-status.json', path: '/v1/edge-mgmt/edgehosts/current/configurations/status' },
  ],
} as const satisfies Declaration
