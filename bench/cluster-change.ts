import { setTimeout as sleep } from 'node:timers/promises'
import { clusterClient, clusterPath, type ClusterClient } from '../test/e2e/cluster/cluster-client.ts'
import { bootClusterHost, uploadDefinition, type ClusterHost } from '../test/e2e/cluster/cluster-host.ts'
import { clusterWrites, type ClusterWrites } from '../test/e2e/cluster/cluster-writes.ts'
import { plantVariables, profileUid, type PlantWish } from '../test/e2e/cluster/plant-definition.ts'
import { eventually } from '../test/e2e/host/eventually.ts'
import type { Reply } from '../test/e2e/host/http.ts'
import { makePackage } from '../test/e2e/host/package.ts'
import { hasKit, kitVersions, noKit } from '../test/support/kubernetes-kit.ts'
import { auditArguments, countVerbs, readRequests, startAudit } from './cluster-audit.ts'
import { measureRestoration } from './cluster-restore.ts'
import type { Figure, Measure } from './figure.ts'
import { median, single, spread } from './numbers.ts'
import { readOwnTime, timeOf, type OwnTime, type Span } from './own-time.ts'
import { watchPrograms } from './program-spans.ts'

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
      ...{ value: spread(times), unit: 's', target: '≤ 1 s' },
      note: `PUT of what GET gives, ${rounds} times`,
    },
    {
      name: 'cluster: writes to the API server by these applies',
      ...{ value: single(requests.filter(({ isWrite }) => isWrite).length), unit: '', target: '0' },
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
      ...{ unit: 's', target: '≤ 1 s' },
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
            ...{ value: spread(written), unit: '' as const, target: '0' },
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
