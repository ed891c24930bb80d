import type { Static } from 'typebox'
import type { CurrentUser } from '../../auth/schemas.ts'
import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { writeKubeconfigTo, requireDetails, clusterPath, shownVersion } from '../../ctl/cluster.ts'
import {
  renderFacts,
  type Fact,
  type Paper,
  renderTable,
  type Column,
  moment,
  oneLine,
  span,
} from '../../ctl/layout.ts'
import type { ClusterCurrentApplications, PackInfo } from '../packs/schemas.ts'
import type { ClusterDetails } from '../schemas.ts'
import { parseLimit, filterOf, noteRest } from '../../ctl/list.ts'
import type { Event, EventSource } from '../events/schemas.ts'

/**
 * The kubeconfig of the administrator of Kubernetes, and the version of that; the host audits its delivery.
 * @throws Failure, also where there is none, or none for this user
 */
export async function requireKubeconfig(
  context: Pick<Context, 'client'>,
): Promise<{ readonly kubeconfig: string; readonly version: string }> {
  const { status } = await requireDetails(context, { withKubeconfig: true })
  const { kubeconfig, k8sVersion: version } = status
  if (kubeconfig !== undefined) return { kubeconfig, version }
  const { userName, role } = await context.client.get<User>('/v1/users/current', ['userName', 'role'])
  throw new Failure(
    'failed',
    role === 'admin'
      ? 'there is no kubeconfig: the control plane is not set up yet; see: edgehostctl cluster watch'
      : `the kubeconfig is for administrators of the host, and ${oneLine(userName)} is not one; log in with the account of one`,
  )
}

type User = Static<typeof CurrentUser>

/** `edgehostctl cluster kubeconfig`. */
export async function writeKubeconfig(context: Context<'file'>): Promise<undefined> {
  const { line, output } = context
  const { kubeconfig } = await requireKubeconfig(context)
  await writeKubeconfigTo(output, kubeconfig, line.options.file)
  return undefined
}

type Step = ClusterDetails['status']['steps'][number]
type Trouble = ClusterDetails['status']['troubles'][number]
type Node = ClusterDetails['status']['nodePools'][number]['nodes'][number]

const nodeLayout: readonly Column<Node>[] = [
  { title: 'NODE', read: ({ nodeName }) => nodeName, isFlexible: true },
  { title: 'ADDRESS', read: ({ ipv4 }) => ipv4 },
  { title: 'VERSION', read: ({ k8sVersion }) => k8sVersion },
  { title: 'AGE', read: ({ age }) => age },
  {
    title: 'HEALTH',
    read: ({ health }) => [health.status, health.reason].filter(Boolean).join(': '),
    isFlexible: true,
  },
]

const packLayout: readonly Column<PackInfo>[] = [
  { title: 'PACK', read: ({ name, displayName }) => displayName ?? name, isFlexible: true },
  { title: 'VERSION', read: ({ version }) => version },
  { title: 'LAYER', read: ({ layer }) => layer },
  { title: 'STATUS', read: ({ status }) => status },
  { title: 'WAITS FOR', read: waitsFor, isFlexible: true },
]

const troubleLayout: readonly Column<Trouble>[] = [
  { title: 'POD', read: ({ namespace, pod }) => `${namespace}/${pod}`, isFlexible: true },
  { title: 'CONTAINER', read: ({ container }) => container },
  { title: 'PACK', read: ({ pack }) => pack },
  { title: 'SINCE', read: ({ sinceTimestamp }) => sinceTimestamp && moment(sinceTimestamp) },
  { title: 'REASON', read: ({ reason, message }) => `${reason}: ${message}`, isFlexible: true },
]

const stepLayout: readonly Column<Step>[] = [
  { title: 'STEP', read: ({ title }) => title, isFlexible: true },
  { title: 'STATE', read: ({ state }) => state },
  { title: 'FAILURES', read: ({ failures }) => String(failures) },
  { title: 'NEXT TRY', read: ({ nextTryTimestamp }) => nextTryTimestamp && moment(nextTryTimestamp) },
  { title: 'REASON', read: ({ reason }) => reason, isFlexible: true },
]

/** `edgehostctl cluster get`. */
export async function getCluster(context: Context): Promise<undefined> {
  const details = await requireDetails(context)
  const { clusterProfileTemplates } = await context.client.get<ClusterCurrentApplications>(
    `${clusterPath}/applications`,
    ['clusterProfileTemplates'],
  )
  await context.output.show({ ...details, clusterProfileTemplates }, (paper) =>
    render(
      details,
      clusterProfileTemplates.flatMap(({ packs }) => packs),
      paper,
    ),
  )
  return undefined
}

function render(details: ClusterDetails, packs: readonly PackInfo[], paper: Paper): string {
  const { nodePools, steps, troubles } = details.status
  const nodes = nodePools.flatMap((pool) => pool.nodes)
  const moving = steps.filter(({ state }) => state !== 'done')
  return [
    renderFacts(factsOf(details), paper),
    ...(nodes.length > 0 ? [renderTable(nodes, nodeLayout, paper.columns)] : []),
    ...(packs.length > 0 ? [renderTable(packs, packLayout, paper.columns)] : []),
    ...(troubles.length > 0 ? [renderTable(troubles, troubleLayout, paper.columns)] : []),
    ...(moving.length > 0 ? [renderTable(moving, stepLayout, paper.columns)] : []),
  ].join('\n')
}

function factsOf({ metadata, spec, status }: ClusterDetails): Fact[] {
  const { clusterState, phase, clusterStateReason, health, pendingRevision, deadline } = status
  const state = phase === clusterState ? phase : `${clusterState} (${phase})`
  const mood = clusterState === 'Error' ? 'bad' : clusterState === 'Running' ? 'good' : 'warning'
  const reason = health.status === 'Healthy' ? '' : (health.reason ?? '')
  return [
    { label: 'Cluster', lines: [metadata.name ?? ''] },
    { label: 'UID', lines: [metadata.id ?? ''] },
    { label: 'State', lines: [clusterStateReason === '' ? state : `${state}: ${clusterStateReason}`], mood },
    {
      label: 'Health',
      lines: [[health.status, reason].filter(Boolean).join(': ')],
      mood: health.status === 'Healthy' ? 'good' : 'bad',
    },
    ...(deadline === undefined
      ? []
      : [{ label: 'Deadline', lines: [deadlineText(deadline)], mood: 'warning' as const }]),
    { label: 'Kubernetes', lines: [shownVersion(status)] },
    ...(pendingRevision ? [pendingFact(pendingRevision)] : []),
    ...(spec.vip === '' ? [] : [{ label: 'Address', lines: [spec.vip] }]),
    ...(metadata.creationTimestamp === undefined
      ? []
      : [{ label: 'Created', lines: [moment(metadata.creationTimestamp)] }]),
  ]
}

function pendingFact({
  revision,
  outcome,
  reason,
  scheduleAt,
}: NonNullable<ClusterDetails['status']['pendingRevision']>): Fact {
  const label = outcome === 'held' ? 'Held' : 'Waiting'
  const why = outcome === 'held' ? reason : scheduleAt && `for ${moment(scheduleAt)}`
  return {
    label,
    lines: [`revision ${revision}${why === undefined ? '' : `: ${oneLine(why)}`}`],
    ...(outcome === 'held' ? { mood: 'warning' } : {}),
  }
}

const deadlineText = ({
  action,
  leftSeconds,
  timestamp,
}: NonNullable<ClusterDetails['status']['deadline']>) =>
  action === 'takenBack'
    ? `the revision is taken back in ${span(leftSeconds)} unless it runs, at ${moment(timestamp)}`
    : `an operator is needed in ${span(leftSeconds)} unless it runs, at ${moment(timestamp)}`

function waitsFor({ conditions }: PackInfo): string {
  const [open] = conditions.filter(({ status }) => status === 'False')
  return open?.message ?? ''
}

const layout: readonly Column<Event>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.creationTimestamp) },
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'REASON', read: ({ reason }) => reason },
  { title: 'OBJECT', read: objectOf, isFlexible: true },
  { title: 'FROM', read: ({ source }) => source.component, isFlexible: true },
  {
    title: 'MESSAGE',
    read: ({ message, count: times }) => (times === undefined ? message : `${message} (${times} times)`),
    isFlexible: true,
  },
]

/** `edgehostctl cluster events`. */
export async function listEvents({
  client,
  line,
  output,
}: Context<'limit' | 'filter' | 'namespace'>): Promise<undefined> {
  const { namespace } = line.options
  const query = {
    ...filterOf(line),
    ...(namespace === undefined ? {} : { namespace }),
  }
  const found = await client.list<Event, { kubernetes: EventSource }>(
    `${clusterPath}/events`,
    query,
    parseLimit(line, 50),
    ['kubernetes'],
  )
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  const { kubernetes, listmeta, items } = found
  if (kubernetes.state === 'failed')
    output.note(`The events of Kubernetes could not be read: ${kubernetes.message ?? 'it does not say why'}`)
  if (listmeta.continue !== '') noteRest(output, items.length, listmeta.count)
  return undefined
}

function objectOf({ involvedObject, relatedObject }: Event): string {
  if (relatedObject?.kind === 'pack') return `pack ${relatedObject.name ?? ''}`
  const { kind, namespace, name } = involvedObject
  if (name === undefined) return ''
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
