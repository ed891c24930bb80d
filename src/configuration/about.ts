import type { Declaration } from '../root/room.ts'
import { UserDataSection } from './config.ts'
import { configurationErrors } from './codes.ts'

/** Proxy and authorities of this host. */
export const about = {
  errors: configurationErrors,
  config: { userData: UserDataSection },
  attention: {
    ConfigurationFailed:
      'The proxy or the authorities of this host could not be put in place; the message says why. It is tried again.',
    StagesFailed:
      'The stages of user data failed, or were cut off; the message says where. They are not run again by themselves: send them again.',
  },
  tags: { configuration: 'Proxy and certificate authorities of this host.' },
  support: [
    { name: 'configurations.json', path: '/v1/edge-mgmt/edgehosts/current/configurations' },
    { name: 'configurations-status.json', path: '/v1/edge-mgmt/edgehosts/current/configurations/status' },
  ],
} as const satisfies Declaration
