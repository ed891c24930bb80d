import type { HistogramFigures } from '../base/histogram.ts'
import type { Figures } from './figures.ts'

/** One line of a family, or the lines of one histogram. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | HistogramFigures
}

/** A metric: its name, what it means, and how it is read. */
export interface Family {
  /** Prometheus' naming rules: base units, `_total` for counters. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  samples(figures: Figures): Sample[]
}

const alone = (value: number | HistogramFigures | undefined): Sample[] =>
  value === undefined ? [] : [{ labels: {}, value }]

const seconds = (ms: number) => ms / 1_000

/** A sample of each item that has a value. */
function each<T>(
  items: readonly T[],
  labels: (item: T) => Sample['labels'],
  value: (item: T) => number | HistogramFigures | undefined,
): Sample[] {
  return items.flatMap((item) => alone(value(item)).map((sample) => ({ ...sample, labels: labels(item) })))
}

const optionalSeconds = (ms: number | undefined) => (ms === undefined ? undefined : seconds(ms))

/** Every metric there is, in the order in which it is shown. docs/metrics.md is made from this table. */
export const families: readonly Family[] = [
  {
    name: 'edgehostd_build_info',
    type: 'gauge',
    help: 'Always 1; version of the daemon and of its runtime, and who manages the clusters.',
    labels: ['version', 'node', 'mode'],
    samples: ({ sources: { build } }) => [{ labels: { ...build }, value: 1 }],
  },
  {
    name: 'edgehostd_http_requests_total',
    type: 'counter',
    help: 'Answered requests by route as declared; route "none" is everything that is not there.',
    labels: ['method', 'route', 'status'],
    samples: ({ sources }) =>
      sources.requests().flatMap(({ method, route, statuses }) =>
        [...statuses].map(([status, value]) => ({
          labels: { method, route, status: String(status) },
          value,
        })),
      ),
  },
  {
    name: 'edgehostd_http_request_duration_seconds',
    type: 'histogram',
    help: 'From the begin of a request to the end of its reply.',
    labels: ['method', 'route'],
    samples: ({ sources }) =>
      each(
        sources.requests(),
        ({ method, route }) => ({ method, route }),
        ({ durations }) => durations,
      ),
  },
  {
    name: 'edgehostd_http_connections',
    type: 'gauge',
    help: 'Open connections.',
    labels: [],
    samples: ({ sources }) => alone(sources.connections()),
  },
  {
    name: 'edgehostd_rate_limit_refusals_total',
    type: 'counter',
    help: 'Requests refused with 429 because their address asked for this resource too often.',
    labels: ['resource'],
    samples: ({ sources }) =>
      [...sources.rateRefusals()].map(([resource, value]) => ({ labels: { resource }, value })),
  },
  {
    name: 'edgehostd_logins_total',
    type: 'counter',
    help: 'Checks of a password: accepted, refused, expired (right, but to be changed first), limited (too many failures before), busy (no room for one more), failed (PAM or the directory did not answer).',
    labels: ['purpose', 'outcome'],
    samples: ({ sources }) =>
      each(
        sources.logins(),
        ({ purpose, outcome }) => ({ purpose, outcome }),
        ({ count }) => count,
      ),
  },
  {
    name: 'edgehostd_pam_children',
    type: 'gauge',
    help: "PAM children: working on a password, or asleep in PAM's failure delay.",
    labels: ['state'],
    samples: ({ sources }) => {
      const { working, children } = sources.pam()
      return [
        { labels: { state: 'working' }, value: working },
        { labels: { state: 'asleep' }, value: children - working },
      ]
    },
  },
  {
    name: 'edgehostd_pam_waiting_logins',
    type: 'gauge',
    help: 'Logins that wait for a PAM child.',
    labels: [],
    samples: ({ sources }) => alone(sources.pam().waiting),
  },
  {
    name: 'edgehostd_sessions',
    type: 'gauge',
    help: 'Sessions that have not ended.',
    labels: [],
    samples: ({ sources }) => alone(sources.sessions()),
  },
  {
    name: 'edgehostd_fact_age_seconds',
    type: 'gauge',
    help: 'Since a fact of the host was read; refresh is when it is read again, "never" for one that cannot change.',
    labels: ['fact', 'refresh'],
    samples: ({ sources }) =>
      each(
        sources.facts(),
        ({ name, refreshClass }) => ({ fact: name, refresh: refreshClass }),
        ({ ageMs }) => optionalSeconds(ageMs),
      ),
  },
  {
    name: 'edgehostd_fact_read_duration_seconds',
    type: 'gauge',
    help: 'How long the last look at a fact of the host took.',
    labels: ['fact'],
    samples: ({ sources }) =>
      each(
        sources.facts(),
        ({ name }) => ({ fact: name }),
        ({ durationMs }) => optionalSeconds(durationMs),
      ),
  },
  {
    name: 'edgehostd_fact_failing',
    type: 'gauge',
    help: '1 while a fact of the host cannot be read, or a part of it; else 0.',
    labels: ['fact'],
    samples: ({ sources }) =>
      each(
        sources.facts(),
        ({ name }) => ({ fact: name }),
        ({ isFailing }) => Number(isFailing),
      ),
  },
  {
    name: 'edgehostd_job_runs_total',
    type: 'counter',
    help: 'Runs of a recurring job that ended, well or not.',
    labels: ['job_name'],
    samples: ({ sources }) => jobs(sources, ({ runs }) => runs),
  },
  {
    name: 'edgehostd_job_failures_total',
    type: 'counter',
    help: 'Runs of a recurring job that failed.',
    labels: ['job_name'],
    samples: ({ sources }) => jobs(sources, ({ failures }) => failures),
  },
  {
    name: 'edgehostd_job_duration_seconds',
    type: 'gauge',
    help: 'How long the last run of a recurring job took.',
    labels: ['job_name'],
    samples: ({ sources }) => jobs(sources, ({ durationMs }) => optionalSeconds(durationMs)),
  },
  {
    name: 'edgehostd_job_success_age_seconds',
    type: 'gauge',
    help: 'Since the last run of a recurring job that ended well.',
    labels: ['job_name'],
    samples: ({ sources }) => jobs(sources, ({ sinceSuccessMs }) => optionalSeconds(sinceSuccessMs)),
  },
  {
    name: 'edgehostd_audit_unwritten_records_total',
    type: 'counter',
    help: 'Audit records that only the journal has, since the disk did not take them.',
    labels: [],
    samples: ({ sources }) => alone(sources.auditUnwritten()),
  },
  {
    name: 'edgehostd_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'End of the certificate that is in use, seconds since 1970.',
    labels: [],
    samples: ({ sources }) => alone(seconds(sources.certificateEnd().getTime())),
  },
  {
    name: 'edgehostd_database_size_bytes',
    type: 'gauge',
    help: 'Size of the database.',
    labels: [],
    samples: ({ databaseBytes }) => alone(databaseBytes),
  },
  {
    name: 'edgehostd_database_wal_size_bytes',
    type: 'gauge',
    help: 'Size of its write-ahead log.',
    labels: [],
    samples: ({ walBytes }) => alone(walBytes),
  },
  {
    name: 'edgehostd_state_filesystem_size_bytes',
    type: 'gauge',
    help: 'Size of the file system that holds the state folder.',
    labels: [],
    samples: ({ space }) => alone(space?.sizeBytes),
  },
  {
    name: 'edgehostd_state_filesystem_free_bytes',
    type: 'gauge',
    help: 'What can still be written there.',
    labels: [],
    samples: ({ space }) => alone(space?.freeBytes),
  },
  {
    name: 'edgehostd_event_loop_lag_seconds',
    type: 'histogram',
    help: 'By how much a timer of one second came too late; measured from the first scrape until ten minutes after the last.',
    labels: [],
    samples: ({ loop }) => alone(loop.lag),
  },
  {
    name: 'edgehostd_event_loop_busy_seconds_total',
    type: 'counter',
    help: 'Time in which the event loop did something.',
    labels: [],
    samples: ({ loop }) => alone(loop.busySeconds),
  },
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the daemon, user and system; that of its children is not in it.',
    labels: [],
    samples: ({ process }) => alone(process.cpuSeconds),
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of the daemon.',
    labels: [],
    samples: ({ process }) => alone(process.residentBytes),
  },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'When the daemon started, seconds since 1970.',
    labels: [],
    samples: ({ process }) => alone(process.startedAt),
  },
  {
    name: 'process_open_fds',
    type: 'gauge',
    help: 'Open file descriptors of the daemon.',
    labels: [],
    samples: ({ process }) => alone(process.openFiles),
  },
  {
    name: 'process_max_fds',
    type: 'gauge',
    help: 'How many it may have.',
    labels: [],
    samples: ({ process }) => alone(process.maximumFiles),
  },
]

// Not `job`: Prometheus itself gives each series a label of that name.
function jobs(
  sources: Figures['sources'],
  value: (job: ReturnType<typeof sources.jobs>[number]) => number | undefined,
): Sample[] {
  return each(sources.jobs(), ({ name }) => ({ job_name: name }), value)
}
