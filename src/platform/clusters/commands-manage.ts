import { refusalOf, type Context } from '../../ctl/client.ts'
import { confirm, confirmDeletion } from '../../ctl/confirm.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Fact, renderTable, type Column, moment, oneLine } from '../../ctl/layout.ts'
import { understand } from '../../ctl/reply.ts'
import { writeKubeconfigTo } from '../../ctl/cluster.ts'
import type { SpectroCluster } from './schemas.ts'
import {
  clusterKind,
  findCluster,
  silenceOf,
  desiredNow,
  desiredOf,
  whenHostActs,
  showScopes,
  type ScopeRow,
} from '../commands/find.ts'
import { numberOf, sendChecked } from '../commands/send.ts'

const layout: readonly Column<ScopeRow<SpectroCluster>>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'HOST', read: ({ item }) => item.spec.edgeHost.name, isFlexible: true },
  { title: 'STATE', read: ({ item }) => stateOf(item) },
  { title: 'WANTED', read: ({ item }) => desiredWord(item) },
  { title: 'LAST SEEN', read: ({ item }) => lastSeenOf(item) },
  { title: 'PROFILES', read: ({ item }) => profilesOf(item).join(', '), isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

/** The last reported state of a cluster is not the current one while its host is silent. */
const stateOf = (cluster: SpectroCluster) =>
  silenceOf(cluster) === undefined ? cluster.status.state : `was ${cluster.status.state}`

/** Outcome of the newest change. */
function desiredWord(cluster: SpectroCluster): string | undefined {
  const { number } = cluster.spec
  const isKnown = cluster.status.number !== undefined || desiredOf(cluster) !== undefined
  return desiredNow(cluster)?.reason ?? (isKnown ? `number ${number} waits` : undefined)
}

/** Age of the shown state, and whether the host answers. */
function lastSeenOf(cluster: SpectroCluster): string {
  const { lastHeartbeatTimestamp } = cluster.status
  const last = lastHeartbeatTimestamp === undefined ? 'never' : moment(lastHeartbeatTimestamp)
  return silenceOf(cluster) === undefined ? last : `${last}, silent`
}

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
  const { message = '', number } = status
  const state = stateOf(cluster)
  const silence = silenceOf(cluster)
  const desired = desiredOf(cluster)
  return [
    { label: 'Cluster', lines: [metadata.name] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(project === '' ? [] : [{ label: 'Project', lines: [project] }]),
    { label: 'Host', lines: [spec.edgeHost.name] },
    {
      label: 'State',
      lines: [message === '' ? state : `${state}: ${message}`],
      mood: status.state === 'Error' ? 'bad' : state === 'Running' ? 'good' : 'warning',
    },
    { label: 'Last seen', lines: [lastSeenOf(cluster)], mood: silence === undefined ? 'good' : 'bad' },
    ...(silence === undefined ? [] : [{ label: 'Host silent', lines: [silence], mood: 'bad' } as const]),
    ...(status.isDeletionRequested
      ? [
          {
            label: 'Deletion',
            lines: [`number ${spec.number}: the host is to delete it`],
            mood: 'bad',
          } as const,
        ]
      : []),
    {
      label: 'Wanted',
      lines: [
        `number ${spec.number}${number === undefined ? ', of which the host has not said anything' : `; the host has accepted ${number}`}`,
        ...(desired
          ? [
              `${desiredNow(cluster) ? '' : `number ${desired.observedGeneration}: `}${[desired.reason, desired.message].filter(Boolean).join(': ')}`,
            ]
          : []),
      ],
      mood:
        !desiredNow(cluster) || silence !== undefined
          ? 'warning'
          : desired?.status === 'True'
            ? 'good'
            : desired?.status === 'False'
              ? 'bad'
              : 'warning',
    },
    { label: 'Profiles', lines: profilesOf(cluster) },
    { label: 'Created', lines: [moment(metadata.creationTimestamp)] },
    { label: 'Changed', lines: [moment(metadata.lastModifiedTimestamp)] },
  ]
}

export async function applyCluster(
  context: Context<'project' | 'cancel-deletion' | 'yes'>,
): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const isCancelling = line.options['cancel-deletion'] !== undefined
  const isDeletion = item.status.isDeletionRequested
  const { name, when } = understand(() => ({
    name: oneLine(item.metadata.name),
    when: whenHostActs(item, 'applies the desired state; changes made there are taken back'),
  }))
  if (isDeletion && !isCancelling)
    throw new Failure(
      'failed',
      `the cluster ${name} is to be deleted, as number ${item.spec.number}, so it is not applied; to have its host told of the deletion again: cluster delete, to take the deletion back: cluster apply --cancel-deletion`,
    )
  const cancelled = isDeletion
    ? 'is not to be deleted any more; where its host has begun to delete it unseen, it makes it anew'
    : undefined
  if (line.options.yes === undefined)
    confirm(terminal, {
      what: `The cluster ${name} ${cancelled ?? 'is applied once more'}. ${when}`,
      ask: 'Go on?',
      done: 'changed',
    })
  const reply = await sendChecked(
    context,
    'POST',
    pathOf('/apply', isCancelling ? { cancelDeletion: 'true' } : {}),
  )
  output.note(
    `The cluster ${name} is applied once more, as number ${numberOf(reply)}${isDeletion ? '; its deletion is cancelled' : ''}. ${when}`,
  )
  return undefined
}

export async function deleteCluster(context: Context<'project' | 'force' | 'yes'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { item, pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const { name, host, when } = understand(() => ({
    name: oneLine(item.metadata.name),
    host: oneLine(item.spec.edgeHost.name),
    when: whenHostActs(item, 'deletes the cluster, with what was changed there meanwhile'),
  }))
  const isForced = line.options.force !== undefined
  const { spec, status } = item
  // A change that the host has not dealt with never gets there.
  const overtaken =
    !status.isDeletionRequested && !desiredNow(item)
      ? ` Number ${spec.number}, with which the host has not dealt, is left out.`
      : ''
  if (line.options.yes === undefined)
    confirmDeletion(
      terminal,
      isForced
        ? `The platform will forget the cluster ${name}; ${host} keeps what it runs.`
        : `The cluster ${name} on ${host} will go, with everything that runs in it. ${when}${overtaken}`,
    )
  await client.change('DELETE', pathOf('', isForced ? { forceDelete: 'true' } : {}))
  output.note(
    isForced ? `The cluster ${name} is forgotten.` : `The cluster ${name} is to be deleted. ${when}`,
  )
  return undefined
}

export async function clusterKubeconfig(context: Context<'project' | 'file'>): Promise<undefined> {
  const { client, line, output, target } = context
  const { pathOf } = await findCluster(client, line.arguments[0] ?? '', line.options.project)
  const reply = await client.ask({ method: 'GET', path: pathOf('/assets/kubeconfig') })
  if (reply.status !== 200) throw refusalOf(target, reply)
  await writeKubeconfigTo(output, reply.body.toString(), line.options.file)
  return undefined
}
