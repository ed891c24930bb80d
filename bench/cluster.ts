import { cp, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterDetails } from '../src/cluster/schemas.ts'
import { clusterClient, type ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { clusterWrites } from '../test/e2e/cluster/cluster-writes.ts'
import type { PlantWish } from '../test/e2e/cluster/plant-definition.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import { makePackage } from '../test/e2e/host/package.ts'
import { hasKit, noKit } from '../test/support/kubernetes-kit.ts'
import {
  type Figure,
  type Measure,
  median,
  parseCpuMs,
  parseRssMiB,
  ratioFigure,
  single,
  spread,
  inTurns,
} from './figure.ts'

/** A cluster in a booted host with the package of this checkout. */
export const measureCluster: Measure = async ({ isQuick, say }) => {
  if (!hasKit) return [{ name: 'cluster', value: undefined, unit: '', note: noKit }]
  const times = isQuick ? { settleMs: 20_000, measureMs: 60_000 } : { settleMs: 90_000, measureMs: 300_000 }
  process.env.ARCHITECTURES ??= 'amd64'
  say('cluster: booting a host')
  const plant = await bootClusterHost({ deb: await makePackage() })
  try {
    const cluster = clusterClient(plant)
    const withoutMiB = await readMemoryAtRest(plant, times)
    say('cluster: creating it')
    const creation = await measureCreation(plant, cluster)
    const images = await measureImagePulls(plant, { rounds: isQuick ? 2 : 5, say })
    say('cluster: at rest')
    return [...creation, ...images, ...(await measureRest(plant, cluster, times, withoutMiB))]
  } finally {
    await plant.host.unplug()
  }
}

/**
 * Creates a cluster, and says how much of the time from its POST to the event `Running` is the daemon's own. The POST counts whole, although
 * it starts helm and kubeadm.
 */
async function measureCreation({ host }: ClusterHost, cluster: ClusterClient): Promise<Figure[]> {
  const from = Date.now()
  await cluster.create()
  const write = { from, to: Date.now() }
  const { status } = await cluster.reach('Running', { timeoutMs: 600_000, onLook: () => sleep(1_000) })
  const end = await timeOf(cluster, 'Running')
  const own = await readOwnTime(host, status.steps, { write, end })
  const name = 'cluster: of it without a program of a step and without a wait for Kubernetes'
  const part = (what: string, ms: number, note: string): Figure => ({
    name: `cluster: ${what}`,
    value: single(ms / 1_000),
    unit: 's',
    note,
  })
  return [
    part('POST to Running', end - from, `${status.steps.length} steps, ${own.programs} programs`),
    {
      name,
      value: single(own.total / 1_000),
      unit: 's',
      target: '≤ 2 s',
      note: 'the sum of the next four',
    },
    part('own, until the reply to the POST', own.write, 'preparation and pre-flight'),
    part('own, between steps', own.between, 'looks, plans, records'),
    part(
      'own, within steps',
      own.within,
      'starts of units and keepers, ends of programs, work of the daemon itself',
    ),
    part(
      'own, starts of step.cjs',
      own.start,
      `${own.programs} times its start, measured ${startUps} times by itself`,
    ),
  ]
}

interface RestTimes {
  /** After a start, before the daemon is at rest. */
  readonly settleMs: number
  readonly measureMs: number
}

/** Starts the daemon anew. @returns its resident memory at rest, MiB */
async function readMemoryAtRest({ host }: ClusterHost, { settleMs }: RestTimes): Promise<number> {
  await host.output(['systemctl', 'restart', 'edgehostd'])
  await sleep(settleMs)
  return parseRssMiB(await host.read(`/proc/${await host.mainPid()}/status`))
}

/** What a Running cluster costs the daemon at rest. @param withoutMiB its memory at rest before there was a cluster */
async function measureRest(
  plant: ClusterHost,
  cluster: ClusterClient,
  times: RestTimes,
  withoutMiB: number,
): Promise<Figure[]> {
  const { host } = plant
  await startAudit(plant, cluster)
  await eventually(async () => {
    const details = await cluster.details()
    if (details?.status.health.status === 'Healthy') return
    await sleep(1_000)
    throw new Error('the cluster is not healthy')
  }, 180_000)
  const memory = await readMemoryAtRest(plant, times)
  const pid = await host.mainPid()
  const cpuMs = async () => parseCpuMs(await host.read(`/proc/${pid}/stat`), { children: true })
  const [begun, before] = [Date.now(), await cpuMs()]
  await sleep(times.measureMs)
  const [ended, after] = [Date.now(), await cpuMs()]
  const requests = await readRequests(host, { from: begun, to: ended })
  const seconds = (ended - begun) / 1_000
  return [
    {
      name: 'cluster: idle CPU of a core',
      value: single((after - before) / (10 * seconds)),
      unit: '%',
      target: '≤ 0.5 %',
      note: `${after - before} ms in ${Math.round(seconds)} s, children included`,
    },
    {
      name: 'cluster: idle RSS more than without',
      value: single(memory - withoutMiB),
      unit: 'MiB',
      target: '≤ 15 MiB',
      note: `${memory.toFixed(1)} and ${withoutMiB.toFixed(1)} MiB, each ${times.settleMs / 1_000} s after a start`,
    },
    {
      name: 'cluster: requests to the API server a minute',
      value: single((requests.length * 60) / seconds),
      unit: '',
      target: '≤ 6',
      note: countVerbs(requests),
    },
  ]
}

const state = '/var/lib/edgehostd'
const folder = `${state}/bench`

// A second containerd with the configuration of the cluster's own and an empty root: what one has of an image it does not pull again.
const containerd = `
folder=${folder} unit=bench-containerd.service
begin() {
  systemctl stop $unit 2> /dev/null || true
  rm -rf $folder/root /run/bench-containerd
  sed "s#^root = .*#root = \\"$folder/root\\"#; s#/run/edgehostd-containerd#/run/bench-containerd#; s#${state}/cluster/containerd/opt#$folder/opt#" \\
    ${state}/cluster/containerd-config/config.toml > $folder/config.toml
  systemd-run --quiet --collect --unit=$unit --property=KillMode=mixed containerd --config $folder/config.toml
  until ctr --address /run/bench-containerd/containerd.sock version > /dev/null 2>&1; do sleep 0.1; done
}
took() { local begun=$(date +%s%N); "$@" > /dev/null; echo $((($(date +%s%N) - begun) / 1000000)); }
`
const pull = `${containerd}
begin
sed 's#/run/edgehostd-containerd#/run/bench-containerd#' ${state}/cluster/kubeadm/init.yaml > $folder/init.yaml
took ${state}/cluster/programs/kubeadm/current/kubeadm config images pull --config $folder/init.yaml
`
// One archive, in which a layer that images share is once, as in the content store. Those of the kit are one for each image.
const archive = `${containerd}
begin
cri="ctr --address /run/bench-containerd/containerd.sock --namespace k8s.io images"
for each in $folder/images/*.tar; do $cri import "$each" > /dev/null; rm "$each"; done
$cri export $folder/images.tar $($cri list --quiet | grep -v '^sha256:')
`
const importAll = `${containerd}
begin
took ctr --address /run/bench-containerd/containerd.sock --namespace k8s.io images import $folder/images.tar
`
const end = `${containerd} systemctl stop $unit || true; rm -rf $folder /run/bench-containerd`

/** The images of Kubernetes pulled by kubeadm from the registry of the host, against the same images imported by ctr from one archive. */
async function measureImagePulls(
  { host, kit }: ClusterHost,
  { rounds, say }: { readonly rounds: number; readonly say: (message: string) => void },
): Promise<Figure[]> {
  const wanted = JSON.parse(await host.read(`${state}/cluster/kubeadm/images.json`)) as readonly string[]
  const names = wanted.map((image) => image.slice(image.lastIndexOf('/') + 1).replace(':', '-'))
  const archives = (await readdir(await kit.images())).filter((each) => names.includes(each.slice(0, -4)))
  if (archives.length !== wanted.length)
    throw new Error(`of the images ${names.join(', ')} there are the archives ${archives.join(', ')}`)
  const images = join(`/proc/${host.leader}/root`, folder, 'images')
  await mkdir(images, { recursive: true })
  for (const each of archives) await cp(join(await kit.images(), each), join(images, each))
  const seconds = async (script: string) => Number(await host.sh(script)) / 1_000
  const measured = async () => {
    await host.sh(archive)
    const sides = { base: () => seconds(importAll), own: () => seconds(pull) }
    return inTurns(rounds, sides, (round) => say(`cluster: images, ${round}`))
  }
  const { own, base } = await measured().finally(() => host.sh(end))
  const name = 'cluster: images of Kubernetes by the registry into containerd'
  return [
    ratioFigure(`${name} ÷ ctr images import`, own, base, {
      target: '≤ 1.5',
      note: `${rounds} pairs, ${archives.length} images, into an empty containerd`,
    }),
    { name, value: spread(own), unit: 's' },
  ]
}

const policy = '/etc/kubernetes/pki/bench-audit.yaml'

// Of each request one line, when it is received, a watch too. The daemon and the programs that it starts are the only users of this name, but
// for kubectl in a test or a bench.
const policyText = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- {level: Metadata, users: [kubernetes-admin]}
- {level: None}
`

/** Arguments of the API server; a manifest that is changed by hand would be put right. */
export const auditArguments = { 'audit-policy-file': policy, 'audit-log-path': '-' } as const

/** A request of the daemon to the API server. */
interface AuditedRequest {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly verb: string
  /** Whether it may have changed something. */
  readonly isWrite: boolean
}

/** Has the API server of a Running cluster write down the requests of the daemon, by a definition with the arguments for it. */
export async function startAudit(
  plant: ClusterHost,
  cluster: ClusterClient,
  wish: PlantWish = {},
): Promise<void> {
  await plant.host.write(policy, policyText)
  const writes = clusterWrites(plant, cluster)
  await writes.take({ ...wish, version: '1.0.1', apiArguments: auditArguments })
  await writes.settled(300_000)
}

/** The requests of a time. */
export async function readRequests(
  host: ClusterHost['host'],
  { from, to }: Span,
): Promise<readonly AuditedRequest[]> {
  const log = await host.sh('cat /var/log/pods/kube-system_kube-apiserver*/kube-apiserver/*.log')
  const all = parseAudit(log)
  if (all.length === 0) throw new Error('the API server has written down no request at all')
  return all.filter(({ at }) => at >= from && at < to)
}

/** How many of each kind there were, for a note. */
export function countVerbs(requests: readonly AuditedRequest[]): string {
  const verbs = [...new Set(requests.map(({ verb }) => verb))]
  const counted = verbs.map((each) => `${requests.filter(({ verb }) => verb === each).length} ${each}`)
  return counted.join(', ') || 'none'
}

const reading = ['get', 'list', 'watch']

/** Lines of a log of containers, `<time> stdout F <line>`, that are events of the audit. */
const parseAudit = (log: string): readonly AuditedRequest[] =>
  log.split('\n').flatMap((line) => {
    const from = line.indexOf('{"kind":"Event"')
    if (from < 0) return []
    const {
      verb = '',
      requestURI = '',
      requestReceivedTimestamp = '',
    } = JSON.parse(line.slice(from)) as Record<string, string>
    const isWrite = !reading.includes(verb) && !requestURI.includes('dryRun=All')
    return [{ at: Date.parse(requestReceivedTimestamp), verb, isWrite }]
  })

/** Milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly to: number
}

interface Work {
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
const startUps = 9

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
