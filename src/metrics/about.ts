import type { Declaration } from '../room.ts'
import { Metrics } from './config.ts'

/** What the daemon counts, for Prometheus; its own figures are those of the process. */
export const about = {
  config: { metrics: Metrics },
  checkReferencedFiles: async (check) => (await import('./check-token-file.ts')).checkTokenFile(check),
  families: {
    edgehostd_build_info: {
      type: 'gauge',
      help: 'Always 1; version of the daemon and of its runtime, and who manages the clusters.',
      labels: ['version', 'node', 'mode'],
    },
    edgehostd_event_loop_lag_seconds: {
      type: 'histogram',
      help: 'By how much a timer of one second came too late; measured from the first scrape until ten minutes after the last.',
    },
    edgehostd_event_loop_busy_seconds_total: {
      type: 'counter',
      help: 'Time in which the event loop did something.',
    },
    process_cpu_seconds_total: {
      type: 'counter',
      help: 'CPU time of the daemon, user and system; that of its children is not in it.',
    },
    process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of the daemon.' },
    process_start_time_seconds: { type: 'gauge', help: 'When the daemon started, seconds since 1970.' },
    process_open_fds: { type: 'gauge', help: 'Open file descriptors of the daemon.' },
    process_max_fds: { type: 'gauge', help: 'How many it may have.' },
  },
  support: [{ name: 'metrics.txt', path: '/metrics' }],
} as const satisfies Declaration
