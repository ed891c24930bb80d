import type { Declaration } from '../root/room.ts'
import { Metrics } from './config.ts'

/** The metrics for Prometheus; the room's own metrics are about the process. */
export const about = {
  config: { metrics: Metrics },
  checkReferencedFiles: async (check) => (await import('./scrape-access.ts')).checkTokenFile(check),
  families: {
    edgehostd_build_info: {
      type: 'gauge',
      help: 'Always 1; the labels say the version of the daemon and of its runtime, and the mode of the host.',
      labels: ['version', 'node', 'mode'],
    },
    edgehostd_event_loop_lag_seconds: {
      type: 'histogram',
      help: 'Delay of a timer of one second; measured from the first scrape until ten minutes after the last.',
    },
    edgehostd_event_loop_busy_seconds_total: {
      type: 'counter',
      help: 'Time in which the event loop was busy.',
    },
    process_cpu_seconds_total: {
      type: 'counter',
      help: 'CPU time of the daemon, user and system, without its children.',
    },
    process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of the daemon.' },
    process_start_time_seconds: { type: 'gauge', help: 'Start time of the daemon, seconds since 1970.' },
    process_open_fds: { type: 'gauge', help: 'Open file descriptors of the daemon.' },
    process_max_fds: { type: 'gauge', help: 'Maximum number of open file descriptors.' },
  },
  support: [{ name: 'metrics.txt', path: '/metrics' }],
} as const satisfies Declaration
