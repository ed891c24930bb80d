import { notLoggedIn } from '../../ctl/client.ts'
import { confirm, confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/context.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { toFailure, understand } from '../../ctl/reply.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment, oneLine } from '../../ctl/text.ts'
import { writeKubeconfigTo } from '../../ctl/write-kubeconfig.ts'
import type { SpectroCluster } from '../schemas/clusters.ts'
import { clusterKind, findCluster, wantedOf } from './find-cluster.ts'
import { showScopes, type ScopeRow } from './scopes.ts'
import { numberOf, sendChecked } from './send-checked.ts'

const layout: readonly Column<ScopeRow<SpectroCluster>>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'HOST', read: ({ item }) => item.spec.edgeHost.name, isFlexible: true },
  { title: 'STATE', read: ({ item }) => item.status.state },
  { title: 'WANTED', read: ({ item }) => wantedOf(item)?.reason },
  { title: 'PROFILES', read: ({ item }) => profilesOf(item).join(', '), isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

const profilesOf = ({ spec }: SpectroCluster) =>
  spec.clusterProfileTemplates.map(({ name, profileVersion }) => `${name} ${profileVersion}`)

export const listClusters = showScopes<SpectroCluster>(clusterKind.path, layout)

type Step = NonNullable<SpectroCluster['status']['steps']>[number]
type Pack = NonNullable<SpectroCluster['status']['packs']>[number]

const packLayout: readonly Column<Pack>[] = [
  { title: 'PACK', read: ({ name }) => name, isFlexible: true },
  { title: 'VERSION', read: ({ version }) => version },
  { title: 'STATUS', read: ({ condition }) => condition?.reason },
  { title: 'MESSAGE', read: ({ condition }) => condition?.message, isFlexible: true },
]

const stepLayout: readonly Column<Step>[] = [
  { title: 'STEP', read: ({ title }) => title, isFlexible: true },
  { title: 'STATE', read: ({ state }) => state },
  { title: 'FAILURES', read: ({ failures }) => String(failures) },
  { title: 'NEXT TRY', read: ({ nextTryTimestamp }) => nextTryTimestamp && moment(nextTryTimestamp) },
  { title: 'REASON', read: ({ reason }) => reason, isFlexible: true },
]

export async function showCluster({ client, line, output }: Context<'project'>): Promise<undefined> {
  const { scope, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const cluster = await client.get<SpectroCluster>(pathOf(), ['metadata', 'spec', 'status'])
  await output.show(cluster, (paper) => {
    const { packs = [], steps = [] } = cluster.status
    const moving = steps.filter(({ state }) => state !== 'done')
    return [
      renderFacts(factsOf(cluster, scope.name), paper),
      ...(packs.length > 0 ? [renderTable(packs, packLayout, paper.columns)] : []),
      ...(moving.length > 0 ? [renderTable(moving, stepLayout, paper.columns)] : []),
    ].join('\n')
  })
  return undefined
}

function factsOf(cluster: SpectroCluster, project: string): Fact[] {
  const { metadata, spec, status } = cluster
  const { state, message = '', number, lastHeartbeatTimestamp } = status
  const wanted = wantedOf(cluster)
  return [
    { label: 'Cluster', lines: [metadata.name] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(project === '' ? [] : [{ label: 'Project', lines: [project] }]),
    { label: 'Host', lines: [spec.edgeHost.name] },
    {
      label: 'State',
      lines: [message === '' ? state : `${state}: ${message}`],
      mood: state === 'Error' ? 'bad' : state === 'Running' ? 'good' : 'warning',
    },
    {
      label: 'Wanted',
      lines: [
        `number ${spec.number}${number === undefined ? ', of which the host has not said anything' : `; the host has accepted ${number}`}`,
        ...(wanted ? [[wanted.reason, wanted.message].filter(Boolean).join(': ')] : []),
      ],
      mood: wanted?.status === 'True' ? 'good' : wanted?.status === 'False' ? 'bad' : 'warning',
    },
    { label: 'Profiles', lines: profilesOf(cluster) },
    ...(lastHeartbeatTimestamp === undefined
      ? []
      : [{ label: 'Last heartbeat', lines: [moment(lastHeartbeatTimestamp)] }]),
    { label: 'Created', lines: [moment(metadata.creationTimestamp)] },
    { label: 'Changed', lines: [moment(metadata.lastModifiedTimestamp)] },
  ]
}

export async function applyCluster(context: Context<'project' | 'yes'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const name = understand(() => oneLine(item.metadata.name))
  if (line.options.yes === undefined)
    confirm(terminal, {
      what: `What is wanted of the cluster ${name} is applied once more; what was changed on its host is taken back.`,
      ...{ ask: 'Go on?', done: 'changed' },
    })
  const reply = await sendChecked(context, 'POST', pathOf('/apply'))
  output.note(`The cluster ${name} is applied once more, as number ${numberOf(reply)}.`)
  return undefined
}

export async function deleteCluster(context: Context<'project' | 'force' | 'yes'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const { name, host } = understand(() => ({
    name: oneLine(item.metadata.name),
    host: oneLine(item.spec.edgeHost.name),
  }))
  const isForced = line.options.force !== undefined
  if (line.options.yes === undefined)
    confirmDeletion(
      terminal,
      isForced
        ? `The platform will forget the cluster ${name}; ${host} keeps what it runs.`
        : `The cluster ${name} on ${host} will go, with everything that runs in it.`,
    )
  await client.change('DELETE', pathOf('', isForced ? { forceDelete: 'true' } : {}))
  output.note(
    isForced ? `The cluster ${name} is forgotten.` : `The host ${host} deletes the cluster ${name}.`,
  )
  return undefined
}

export async function clusterKubeconfig(context: Context<'project' | 'file'>): Promise<undefined> {
  const { client, line, output, target } = context
  const { pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const reply = await client.ask({ method: 'GET', path: pathOf('/assets/kubeconfig') })
  if (reply.status === 401) throw notLoggedIn(target, toFailure(reply))
  if (reply.status !== 200) throw toFailure(reply)
  await writeKubeconfigTo(output, reply.body.toString(), line.options.file)
  return undefined
}
