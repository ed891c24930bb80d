import type { Declaration } from '../root/room.ts'
import { Network } from './config.ts'
import { networkErrors } from './codes.ts'

/** Network of this host. */
export const about = {
  errors: networkErrors,
  config: { network: Network },
  tags: { network: 'Network interfaces, bonds, VLANs and bridges of this host.' },
  support: [
    { name: 'network-interfaces.json', path: '/v1/edge-mgmt/network/interfaces' },
    { name: 'network-bonds.json', path: '/v1/edge-mgmt/network/bonds' },
    { name: 'network-vlans.json', path: '/v1/edge-mgmt/network/vlans' },
    { name: 'network-bridges.json', path: '/v1/edge-mgmt/network/bridges' },
  ],
} as const satisfies Declaration
