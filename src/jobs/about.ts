import type { Declaration } from '../root/room.ts'

// Not `job`: Prometheus itself gives each series a label of that name.
const labels = ['job_name'] as const

/** Recurring work. */
export const about = {
  families: {
    edgehostd_job_runs_total: {
      type: 'counter',
      help: 'Runs of a recurring job that ended, successful or not.',
      labels,
    },
    edgehostd_job_failures_total: {
      type: 'counter',
      help: 'Runs of a recurring job that failed.',
      labels,
    },
    edgehostd_job_duration_seconds: {
      type: 'gauge',
      help: 'Duration of the last run of a recurring job.',
      labels,
    },
    edgehostd_job_success_age_seconds: {
      type: 'gauge',
      help: 'Time since the last successful run of a recurring job.',
      labels,
    },
  },
} as const satisfies Declaration
