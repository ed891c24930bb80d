import type { Client, Context } from '../../ctl/client.ts'
import { confirm, confirmDeletion } from '../../ctl/confirm.ts'
import { type Fact, renderFacts, type Column, count, moment, oneLine } from '../../ctl/layout.ts'
import { understand } from '../../ctl/reply.ts'
import type { EdgeHostDevice } from './schemas.ts'
import { findItem, findScopes, showScopes, type Scope, type ScopeRow } from '../commands/find.ts'

const hostKind = { noun: 'host', list: 'host list', path: '/v1/edgehosts' } as const

type Row = ScopeRow<EdgeHostDevice>

const layout: readonly Column<Row>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'ADDRESS', read: ({ item }) => item.spec.host.hostAddress },
  { title: 'SYSTEM', read: ({ item }) => systemOf(item), isFlexible: true },
  { title: 'HEALTH', read: ({ item }) => healthOf(item), isFlexible: true },
  {
    title: 'LAST SEEN',
    read: ({ item: { status } }) => status.health && moment(status.health.lastHeartbeatTimestamp),
  },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

function systemOf({ spec: { device } }: EdgeHostDevice): string {
  return [device.os?.family, device.os?.version, device.archType].filter(Boolean).join(' ')
}

function healthOf({ status: { health, isDuplicate } }: EdgeHostDevice): string {
  if (isDuplicate === true) return 'exists twice'
  return health?.state ?? 'never seen'
}

export const listHosts = showScopes<EdgeHostDevice>(hostKind.path, layout)

export async function showHost({ client, line, output }: Context<'project'>): Promise<undefined> {
  const found = await findHost(client, line.arguments[0] ?? '', line.options.project)
  const { scope } = found
  // The list leaves long fields out.
  const item = await client.get<EdgeHostDevice>(found.pathOf(), ['metadata', 'spec', 'status'])
  await output.show(item, (paper) => renderFacts(factsOf(item, scope), paper))
  return undefined
}

function factsOf(host: EdgeHostDevice, scope: Scope): Fact[] {
  const { metadata, spec, status } = host
  const { device, service } = spec
  const labels = Object.entries(metadata.labels).map(([key, value]) => `${key}=${value}`)
  const { cpu, memory } = device
  return [
    { label: 'Name', lines: [metadata.name] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(scope.name === '' ? [] : [{ label: 'Project', lines: [scope.name] }]),
    {
      label: 'Health',
      lines: [healthOf(host), ...(status.health?.message ? [status.health.message] : [])],
      mood: status.health?.state === 'healthy' && status.isDuplicate !== true ? 'good' : 'bad',
    },
    ...(status.health
      ? [{ label: 'Last heartbeat', lines: [moment(status.health.lastHeartbeatTimestamp)] }]
      : []),
    { label: 'Registered', lines: [moment(metadata.creationTimestamp)] },
    { label: 'Address', lines: [spec.host.hostAddress] },
    { label: 'System', lines: [systemOf(host) || 'not reported'] },
    ...(cpu?.cores === undefined ? [] : [{ label: 'CPU', lines: [`${cpu.cores} cores`] }]),
    ...(memory?.sizeInMB === undefined ? [] : [{ label: 'Memory', lines: [`${count(memory.sizeInMB)} MB`] }]),
    ...(service.version === undefined
      ? []
      : [{ label: 'Service', lines: [`${service.name ?? ''} ${service.version}`.trim()] }]),
    ...(labels.length === 0 ? [] : [{ label: 'Labels', lines: labels }]),
  ]
}

export async function acceptHost({
  client,
  line,
  output,
  terminal,
}: Context<'project' | 'yes'>): Promise<undefined> {
  const { item, pathOf } = await findHost(client, line.arguments[0] ?? '', line.options.project)
  const name = understand(() => oneLine(item.metadata.name))
  if (line.options.yes === undefined)
    confirm(terminal, {
      what: `Of the hosts with the key of ${name}, the one that logs in next is accepted; the other is refused from then on.`,
      ask: 'Go on?',
      done: 'changed',
    })
  await client.change('PUT', pathOf('/duplicate'), { action: 'acceptNext' })
  output.note(`The next login of ${name} is accepted.`)
  return undefined
}

export async function deleteHost(context: Context<'project' | 'force' | 'yes'>): Promise<undefined> {
  const { client, line, output, terminal } = context
  const { item, pathOf } = await findHost(client, line.arguments[0] ?? '', line.options.project)
  const { name, clusters } = understand(() => ({
    name: oneLine(item.metadata.name),
    clusters: (item.status.inUseClusters ?? []).map((cluster) => oneLine(cluster.name)).join(', '),
  }))
  const isForced = line.options.force !== undefined
  const left =
    isForced && clusters !== ''
      ? ` The platform will forget its cluster ${clusters}; the host keeps what it runs.`
      : ''
  if (line.options.yes === undefined)
    confirmDeletion(
      terminal,
      `The host ${name} will be removed from the platform and refused from then on.${left}`,
    )
  await client.change('DELETE', pathOf('', isForced ? { forceDelete: 'true' } : {}))
  output.note(
    `The host ${name} is removed from the platform.${left === '' ? '' : ` Its cluster ${clusters} is forgotten.`}`,
  )
  return undefined
}

/** The host that a word names, by its uid or its name, and where it is. */
const findHost = async (client: Client, word: string, project: string | undefined) =>
  findItem<EdgeHostDevice>(client, hostKind, word, await findScopes(client, project))
