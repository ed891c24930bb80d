import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { timesOf } from '../test/e2e-long/cluster/upgrades.ts'
import { clusterClient, type ClusterClient, clusterPath } from '../test/e2e/cluster/cluster-client.ts'
import {
  bootClusterHost,
  changeVersion,
  type ClusterHost,
  uploadDefinition,
} from '../test/e2e/cluster/cluster-host.ts'
import { clusterWrites, type ClusterWrites } from '../test/e2e/cluster/cluster-writes.ts'
import { plantVariables, type PlantWish, profileUid } from '../test/e2e/cluster/plant-definition.ts'
import type { Edgehostd } from '../test/e2e/host/edgehostd.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import type { Reply } from '../test/e2e/host/http.ts'
import { makePackage } from '../test/e2e/host/package.ts'
import { hasKit, type KitVersion, kitVersions, noKit } from '../test/support/kubernetes-kit.ts'
import {
  auditArguments,
  countVerbs,
  type OwnTime,
  readOwnTime,
  readRequests,
  type Span,
  startAudit,
  timeOf,
} from './cluster.ts'
import { childrenOf, type Figure, type Measure, median, single, spread } from './figure.ts'

const [newer, older] = kitVersions
/** After the last of the applies that change nothing, for what the loop may do then. */
const afterMs = 10_000

// A manifest with a variable of its own; those of the plant are also in its chart, or only there.
const definition: PlantWish = {
  packs: (usual) =>
    usual.map((pack) => {
      const { name, manifests: { greeting = '' } = {} } = pack
      const coloured = greeting.replace('  text: ', "  colour: '{{ .spectro.var.colour }}'\n  text: ")
      return name === 'greeting' ? { ...pack, manifests: { greeting: coloured } } : pack
    }),
  variables: [{ name: 'colour', displayName: 'Colour', format: 'string', required: true }],
}
const variables = [...plantVariables, { name: 'colour', profileUid, value: 'red' }]

/** Changes of a running cluster in a booted host, with the package of this checkout. */
export const measureClusterChange: Measure = async ({ isQuick, say }) => {
  if (!hasKit) return [{ name: 'cluster-change', value: undefined, unit: '', note: noKit }]
  const rounds = isQuick ? 2 : 5
  process.env.ARCHITECTURES ??= 'amd64'
  say('cluster-change: booting a host')
  const plant = await bootClusterHost({ version: older, definition, deb: await makePackage() })
  try {
    const cluster = clusterClient(plant)
    say('cluster-change: creating a cluster')
    await cluster.create({ variables })
    await cluster.reach('Running', { timeoutMs: 600_000, onLook: () => sleep(1_000) })
    await startAudit(plant, cluster, definition)
    say('cluster-change: applies that change nothing')
    const figures = [...(await measureNothing(plant, cluster, rounds))]
    for (const change of changesOf(plant, clusterWrites(plant, cluster))) {
      say(`cluster-change: ${change.what}`)
      figures.push(...(await measureChange(plant, cluster, change, rounds)))
    }
    // It takes longer than all the rest.
    if (isQuick) return figures
    say('cluster-change: an upgrade that breaks')
    return [...figures, ...(await measureRestoration(plant, cluster, newer))]
  } finally {
    await plant.host.unplug()
  }
}

/** What GET gives is put, again and again. */
async function measureNothing(
  plant: ClusterHost,
  cluster: ClusterClient,
  rounds: number,
): Promise<readonly Figure[]> {
  const writes = clusterWrites(plant, cluster)
  const from = Date.now()
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const { configuration, etag } = await writes.document()
    const reply = await writes.put(configuration, { 'If-Match': etag })
    expectAccepted(reply)
    times.push(reply.waitedMs / 1_000)
  }
  await sleep(afterMs)
  const requests = await readRequests(plant.host, { from, to: Date.now() })
  if ((await writes.revisions()).length !== 2) throw new Error('a revision was made of what GET gave')
  return [
    {
      name: 'cluster: apply that changes nothing',
      value: spread(times),
      unit: 's',
      target: '≤ 1 s',
      note: `PUT of what GET gives, ${rounds} times`,
    },
    {
      name: 'cluster: writes to the API server by these applies',
      value: single(requests.filter(({ isWrite }) => isWrite).length),
      unit: '',
      target: '0',
      note: `until ${afterMs / 1_000} s after the last one; requests: ${countVerbs(requests)}`,
    },
  ]
}

/** A change of a running cluster, again and again. */
interface Change {
  readonly what: string
  /** Makes what is not measured. @returns the write */
  prepare(round: number): Promise<() => Promise<Reply>>
  /** Whether it leaves every object as it is. */
  readonly isOfNothing?: boolean
}

function changesOf({ host, token, kit }: ClusterHost, writes: ClusterWrites): readonly Change[] {
  const give = (what: string, name: string): Change => ({
    what,
    async prepare(round) {
      const { configuration } = await writes.document()
      const profileVariables = (configuration.spec?.profileVariables ?? []).map((each) =>
        each.name === name ? { ...each, value: `canary of round ${round}` } : each,
      )
      return () => writes.patch({ spec: { profileVariables } })
    },
  })
  return [
    give('values of a pack with a chart', 'token'),
    give('values of a pack with manifests', 'colour'),
    {
      what: 'a definition with the same packs',
      isOfNothing: true,
      async prepare(round) {
        const wish = { ...definition, version: `1.1.${round}`, apiArguments: auditArguments }
        const archiveUploadPath = await uploadDefinition(host, token, kit, wish, 'update')
        const body = { spec: { archiveUploadPath } }
        return () => host.http('PUT', `${clusterPath}/profiles`, { token, body })
      },
    },
  ]
}

/** From the write to the event `Updated`, without helm, kubeadm and kubectl, and without waits for Kubernetes. */
async function measureChange(
  { host, ...plant }: ClusterHost,
  cluster: ClusterClient,
  { what, prepare, isOfNothing = false }: Change,
  rounds: number,
): Promise<readonly Figure[]> {
  const writes = clusterWrites({ host, ...plant }, cluster)
  const all: (OwnTime & { readonly whole: number; readonly programsInWrite: number })[] = []
  const written: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const write = await prepare(round)
    const revision = (await writes.newest()).revision + 1
    const stop = await watchPrograms(host, ['helm', 'kubeadm', 'kubectl'])
    const repliedAt = async (reply: Reply) => {
      expectAccepted(reply)
      const to = Date.now()
      return { from: to - reply.waitedMs, to }
    }
    const span = await write().then(repliedAt)
    const inWrite = stop()
    await untilGood(writes, revision)
    const end = await timeOf(cluster, 'Updated')
    const steps = (await cluster.details())?.status.steps ?? []
    const own = await readOwnTime(host, steps, { write: span, end, inWrite })
    const programsInWrite = lengthOf(span) - own.write
    all.push({ ...own, whole: end - span.from, programsInWrite })
    const requests = await readRequests(host, { from: span.from, to: end })
    written.push(requests.filter(({ isWrite }) => isWrite).length)
  }
  const middle = (read: (each: (typeof all)[number]) => number) =>
    `${(median(all.map(read)) / 1_000).toFixed(2)} s`
  return [
    {
      name: `cluster: ${what}, own time`,
      value: spread(all.map(({ total }) => total / 1_000)),
      unit: 's',
      target: '≤ 1 s',
      note: [
        `${rounds} times; write to Running ${middle(({ whole }) => whole)}`,
        `own: ${middle((own) => own.write)} until the reply, beside ${middle((own) => own.programsInWrite)} of helm and kubeadm`,
        `${middle(({ between }) => between)} between steps, ${middle(({ within }) => within)} within, ${middle(({ start }) => start)} starts of step.cjs`,
        `${median(written)} writes to the API server`,
      ].join('; '),
    },
    ...(isOfNothing
      ? [
          {
            name: `cluster: ${what}, writes to the API server`,
            value: spread(written),
            unit: '' as const,
            target: '0',
          },
        ]
      : []),
  ]
}

/** Asks seldom: each question takes time of the daemon. */
const untilGood = (writes: ClusterWrites, revision: number) =>
  eventually(async () => {
    await sleep(1_000)
    const newest = await writes.newest()
    if (newest.revision !== revision || newest.outcome !== 'good')
      throw new Error(`revision ${newest.revision} is ${newest.outcome}: ${newest.reason}`)
  }, 300_000)

const lengthOf = ({ from, to }: Span) => to - from

function expectAccepted(reply: Reply): void {
  if (reply.status !== 204) throw new Error(`${reply.status} ${reply.text || reply.failure}`)
}

const pauseMs = 100
const mostMs = 1_500_000

/**
 * Breaks an upgrade by an argument that the API server does not know, and measures from the decision to restore, the event `RollbackStarted`,
 * to the first answer of the API server of before.
 */
async function measureRestoration(
  plant: ClusterHost,
  cluster: ClusterClient,
  to: KitVersion,
): Promise<Figure[]> {
  const asking = askReady(plant.host)
  const apiArguments = { 'no-such-argument': 'true' }
  const reply = await changeVersion(plant, to, { definition: { version: '2.0.0', apiArguments } })
  if (reply.status !== 204) throw new Error(`the upgrade was refused: ${reply.text || reply.failure}`)
  await eventually(async () => {
    await sleep(1_000)
    const { outcome, reason } = await clusterWrites(plant, cluster).newest()
    if (outcome !== 'rolledBack') throw new Error(`the upgrade is ${outcome}: ${reason}`)
  }, mostMs)
  const answers = await asking.end()
  const [decidedAt, backAt] = [await timeOf(cluster, 'RollbackStarted'), await timeOf(cluster, 'RolledBack')]
  const readyAt = answers.find((at) => at >= decidedAt)
  if (readyAt === undefined) throw new Error('the API server did not answer again')
  const silentMs = decidedAt - (answers.findLast((at) => at < decidedAt) ?? Number.NaN)
  const { restoreSeconds } = await timesOf(cluster)
  const seconds = (ms: number) => (ms / 1_000).toFixed(1)
  return [
    {
      name: 'cluster: from the decision to restore until the API is ready',
      value: single((readyAt - decidedAt) / 1_000),
      unit: 's',
      target: '≤ 30 s',
      note: `an upgrade to ${to} whose API server does not start; it was silent for ${seconds(silentMs)} s before; ${restoreSeconds} s of it in the step; Running ${seconds(backAt - decidedAt)} s after the decision`,
    },
  ]
}

/** Asks the API server whether it is ready, until its end. */
function askReady(host: ClusterHost['host']) {
  const answers: number[] = []
  const end = new AbortController()
  const url = 'https://10.77.0.1:6443/readyz'
  const asking = (async () => {
    while (!end.signal.aborted) {
      const { exitCode } = await host.run([
        'curl',
        '--silent',
        '--insecure',
        '--fail',
        '--max-time',
        '1',
        url,
      ])
      if (exitCode === 0) answers.push(Date.now())
      await sleep(pauseMs)
    }
  })()
  return {
    /** @returns when it was, milliseconds since 1970, in order */
    async end(): Promise<readonly number[]> {
      end.abort()
      await asking
      return answers
    },
  }
}

const everyMs = 5

/**
 * Looks every 5 ms which of the programs run below the daemon of a booted host.
 * @param names as in `/proc/<pid>/comm`
 * @returns ends it, and gives when each ran
 */
async function watchPrograms(host: Edgehostd, names: readonly string[]): Promise<() => readonly Span[]> {
  const daemon = pidHere(host.leader, await host.mainPid())
  const running = new Map<number, number>()
  const spans: Span[] = []
  function look(): void {
    const now = Date.now()
    const seen = new Set(below(daemon).filter((pid) => names.includes(nameOf(pid))))
    for (const pid of seen) if (!running.has(pid)) running.set(pid, now)
    for (const [pid, from] of running)
      if (!seen.has(pid)) {
        spans.push({ from, to: now })
        running.delete(pid)
      }
  }
  const timer = setInterval(look, everyMs)
  return () => {
    clearInterval(timer)
    look()
    return [...spans, ...[...running.values()].map((from) => ({ from, to: Date.now() }))]
  }
}

const below = (pid: number): readonly number[] => childrenOf(pid).flatMap((child) => [child, ...below(child)])

/** The number that this machine has for a process of a host. */
function pidHere(leader: number, pid: number): number {
  const namespace = namespaceOf(leader)
  const found = readdirSync('/proc')
    .map(Number)
    .filter(Boolean)
    .find((each) => namespaceOf(each) === namespace && innerPid(each) === pid)
  if (found === undefined) throw new Error(`the process ${pid} of the host is not found`)
  return found
}

const namespaceOf = (pid: number) => orEmpty(() => readlinkSync(`/proc/${pid}/ns/pid`))
const innerPid = (pid: number) =>
  Number(/^NSpid:.*\s(\d+)$/m.exec(orEmpty(() => readFileSync(`/proc/${pid}/status`, 'utf8')))?.[1])
const nameOf = (pid: number) => orEmpty(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim())

/** Empty for a process that has ended. */
function orEmpty(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
