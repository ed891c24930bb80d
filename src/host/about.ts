import type { Declaration } from '../root/room.ts'
import { Host } from './config.ts'

/** Facts of this machine. */
export const about = {
  config: { host: Host },
  families: {
    edgehostd_fact_age_seconds: {
      type: 'gauge',
      help: 'Time since a fact of the host was read; refresh says when it is read again, "never" for one that cannot change.',
      labels: ['fact', 'refresh'],
    },
    edgehostd_fact_read_duration_seconds: {
      type: 'gauge',
      help: 'How long the last reading of a fact of the host took.',
      labels: ['fact'],
    },
    edgehostd_fact_failing: {
      type: 'gauge',
      help: '1 while a fact of the host, or a part of it, cannot be read; otherwise 0.',
      labels: ['fact'],
    },
  },
  attention: { FactUnreadable: 'A fact of this host, or a part of it, cannot be read.' },
  tags: { edgehosts: 'What this host is.' },
  limited: ['edgehosts', 'settings'],
  support: [
    { name: 'settings.json', path: '/v1/edge-mgmt/settings' },
    { name: 'facts.json', path: '/v1/edge-mgmt/edgehosts/current' },
  ],
} as const satisfies Declaration
