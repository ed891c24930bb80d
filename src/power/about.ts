import type { Declaration } from '../root/room.ts'
import { powerErrors } from './codes.ts'

/** Reboot, shutdown and reset of this host. */
export const about = {
  errors: powerErrors,
  attention: {
    HostStopPlanned: 'A reboot or a shutdown of this host is planned.',
    HostStopping: 'This host is being rebooted or shut down.',
    HostStopFailed: 'A reboot or a shutdown that was asked for was not done; the message says why.',
    HostResetting: 'This host is being reset; the message has the phase, and why it does not get on.',
    HostBack:
      'This host was booted lately: after a stop that was asked for, another one in order, or none, as by a power cut.',
  },
  tags: { power: 'Reboot, shutdown and reset of this host.' },
  support: [{ name: 'host-actions.json', path: '/v1/edge-mgmt/edgehosts/current/actions' }],
} as const satisfies Declaration
