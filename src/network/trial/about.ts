import type { Declaration } from '../../root/room.ts'
import { trialErrors } from './codes.ts'

/** Changes of the network of this host; the room around it has the tag and the setting. */
export const about = {
  errors: trialErrors,
  attention: {
    NetworkChangeOpen: 'A change of the network is being tried, and is taken back at its deadline.',
    NetworkRevertFailed: 'A change of the network was taken back, but the network is not as before.',
    NetworkChangeNotKept: 'A confirmed change of the network is not written to its files yet.',
  },
  support: [{ name: 'network-changes.json', path: '/v1/edge-mgmt/network/changes' }],
} as const satisfies Declaration
