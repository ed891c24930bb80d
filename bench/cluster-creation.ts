import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import type { ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import type { Figure } from './figure.ts'
import { median, single } from './numbers.ts'

/** Milliseconds since 1970. */
interface Span {
  readonly from: number
  readonly to: number
}

const runsFolder = '/var/lib/edgehostd/cluster/steps'
const startUps = 9

/**
 * Creates a cluster, and says how much of the time from its POST to the event `Running` is the daemon's own: when no program of a step ran,
 * nothing was pulled and Kubernetes was not waited for.
 *
 * Not own is a run of a program, from the file `lock`, which its keeper writes first, to the end in `exit`; and a step that waits for
 * workloads or for the API server. Pulls are such runs. Own is everything else, in four parts:
 * - the POST: preparation and pre-flight, although they start helm and kubeadm: no step runs yet;
 * - between steps: looks at the host, plans, and what is stored;
 * - within steps: systemd-run and the start of the keeper, the time until the end of a program is seen, and what the daemon itself does;
 * - the start of step.cjs up to the first line of an action, in each run: within the runs it cannot be seen, so it is measured by itself.
 */
export async function measureCreation({ host }: ClusterHost, cluster: ClusterClient): Promise<Figure[]> {
  const postedAt = Date.now()
  await cluster.create()
  const repliedAt = Date.now()
  const { status } = await cluster.reach('Running', { timeoutMs: 600_000, onLook: () => sleep(1_000) })
  const runningAt = await timeOf(cluster, 'Running')
  const programs = parseRuns(
    await host.sh(
      `cd ${runsFolder}; for run in *; do echo "$(stat --format=%.3Y "$run/lock") $(cat "$run/exit")"; done`,
    ),
  )
  const stepOf = ({ startTimestamp = '', endTimestamp = '' }: (typeof status.steps)[number]): Span => ({
    from: Date.parse(startTimestamp),
    to: Date.parse(endTimestamp),
  })
  const isWait = ({ key }: { readonly key: string }) => key.endsWith(' available') || key === 'wait-for-api'
  const others = [...programs, ...status.steps.filter(isWait).map(stepOf)]
  const post = uncoveredMs({ from: postedAt, to: repliedAt }, others)
  const rest = { from: repliedAt, to: runningAt }
  const between = uncoveredMs(rest, [...others, ...status.steps.map(stepOf)])
  const within = uncoveredMs(rest, others) - between
  const start = programs.length * (await startOfStepProgram(host))
  const name = 'cluster: of it without a program of a step and without a wait for Kubernetes'
  const part = (what: string, ms: number, note: string): Figure => ({
    ...{ name: `cluster: ${what}`, value: single(ms / 1_000), unit: 's', note },
  })
  return [
    part(
      'POST to Running',
      runningAt - postedAt,
      `${status.steps.length} steps, ${programs.length} programs`,
    ),
    {
      ...{ name, value: single((post + between + within + start) / 1_000), unit: 's', target: '≤ 2 s' },
      note: 'the sum of the next four',
    },
    part('own, until the reply to the POST', post, 'preparation and pre-flight'),
    part('own, between steps', between, 'looks, plans, records'),
    part(
      'own, within steps',
      within,
      'starts of units and keepers, ends of programs, work of the daemon itself',
    ),
    part(
      'own, starts of step.cjs',
      start,
      `${programs.length} times its start, measured ${startUps} times by itself`,
    ),
  ]
}

/** Milliseconds from the start of `step.cjs` to its end where it has nothing to do, which takes hardly longer than its start. */
async function startOfStepProgram(host: ClusterHost['host']): Promise<number> {
  const command = '/usr/lib/edgehostd/node /usr/lib/edgehostd/step.cjs none < /dev/null > /dev/null'
  const times = await host.sh(
    `for each in $(seq ${startUps}); do begun=$(date +%s%N); ${command} || true; echo $((($(date +%s%N) - begun) / 1000)); done`,
  )
  return median(times.trim().split('\n').map(Number)) / 1_000
}

/** When the newest event of a reason was added. */
async function timeOf(cluster: ClusterClient, wanted: string): Promise<number> {
  const found = (await cluster.ownEvents()).find(({ reason }) => reason === wanted)
  if (!found) throw new Error(`there is no event ${wanted}`)
  return Date.parse(found.metadata.creationTimestamp)
}

/** The keeper of a run writes the file `lock` when it begins, and `exit` when its program has ended. */
const parseRuns = (text: string): readonly Span[] =>
  text
    .trim()
    .split('\n')
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
