import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import type { ClusterDetails } from '../src/cluster/schemas.ts'
import { median } from './numbers.ts'

/** Milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly to: number
}

export interface Work {
  /** From the write to its reply. */
  readonly write: Span
  /** When the cluster was Running with what was written. */
  readonly end: number
  /** Runs of helm, kubeadm and kubectl in the write; without them its whole time is the daemon's own. */
  readonly inWrite?: readonly Span[]
}

/** Milliseconds of the daemon's own time, in four parts. */
export interface OwnTime {
  readonly total: number
  readonly write: number
  readonly between: number
  readonly within: number
  readonly start: number
  /** How many programs of steps there were. */
  readonly programs: number
}

const runsFolder = '/var/lib/edgehostd/cluster/steps'
/** How often the start of `step.cjs` is measured by itself. */
export const startUps = 9

/**
 * How much of some work on a cluster is the daemon's own time: when no program of a step ran, nothing was pulled and Kubernetes was not
 * waited for.
 *
 * Not own is a run of a program, from the file `lock`, which its keeper writes first, to the end in `exit`; and a step that waits for
 * workloads or for the API server. Pulls are such runs. Own is everything else, in four parts:
 * - the write: preparation and pre-flight; no step runs yet;
 * - between steps: looks at the host, plans, and what is stored;
 * - within steps: systemd-run and the start of the keeper, the time until the end of a program is seen, and what the daemon itself does;
 * - the start of step.cjs up to the first line of an action, in each run: within the runs it cannot be seen, so it is measured by itself.
 * @param steps those of this work only, all ended
 */
export async function readOwnTime(
  host: ClusterHost['host'],
  steps: ClusterDetails['status']['steps'],
  { write, end, inWrite = [] }: Work,
): Promise<OwnTime> {
  const programs = await readRuns(host)
  const others = [...programs, ...inWrite, ...steps.filter(isWait).map(spanOf)]
  const rest = { from: write.to, to: end }
  const parts = {
    write: uncoveredMs(write, others),
    between: uncoveredMs(rest, [...others, ...steps.map(spanOf)]),
    start: programs.length === 0 ? 0 : programs.length * (await startOfStepProgram(host)),
  }
  const within = uncoveredMs(rest, others) - parts.between
  const total = parts.write + parts.between + within + parts.start
  return { ...parts, within, total, programs: programs.length }
}

/** When the newest event of a reason was added, milliseconds since 1970. */
export async function timeOf(cluster: ClusterClient, wanted: string): Promise<number> {
  const found = (await cluster.ownEvents()).find(({ reason }) => reason === wanted)
  if (!found) throw new Error(`there is no event ${wanted}`)
  return Date.parse(found.metadata.creationTimestamp)
}

type Step = ClusterDetails['status']['steps'][number]

const spanOf = ({ startTimestamp = '', endTimestamp = '' }: Step): Span => ({
  from: Date.parse(startTimestamp),
  to: Date.parse(endTimestamp),
})

const isWait = ({ key }: Step) => key.endsWith(' available') || key === 'wait-for-api'

/** The runs of programs since the present revision was begun: those of another one are forgotten with it. */
const readRuns = async (host: ClusterHost['host']): Promise<readonly Span[]> =>
  parseRuns(
    await host.sh(
      `for run in ${runsFolder}/*; do [ ! -e "$run/exit" ] || echo "$(stat --format=%.3Y "$run/lock") $(cat "$run/exit")"; done`,
    ),
  )

/** The keeper of a run writes the file `lock` when it begins, and `exit` when its program has ended. */
const parseRuns = (text: string): readonly Span[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [begun = '', ...exit] = line.split(' ')
      const { endedAt } = JSON.parse(exit.join(' ')) as { readonly endedAt: number }
      return { from: Number(begun) * 1_000, to: endedAt }
    })

/** Milliseconds of a period that no span covers. */
function uncoveredMs({ from, to }: Span, spans: readonly Span[]): number {
  let left = 0
  let reached = from
  for (const span of [...spans].sort((one, other) => one.from - other.from)) {
    left += Math.max(0, Math.min(span.from, to) - reached)
    reached = Math.max(reached, span.to)
  }
  return left + Math.max(0, to - reached)
}

/** Milliseconds from the start of `step.cjs` to its end where it has nothing to do, which takes hardly longer than its start. */
async function startOfStepProgram(host: ClusterHost['host']): Promise<number> {
  const command = '/usr/lib/edgehostd/node /usr/lib/edgehostd/step.cjs none < /dev/null > /dev/null'
  const times = await host.sh(
    `for each in $(seq ${startUps}); do begun=$(date +%s%N); ${command} || true; echo $((($(date +%s%N) - begun) / 1000)); done`,
  )
  return median(times.trim().split('\n').map(Number)) / 1_000
}
