import type { Client } from '../../ctl/client.ts'
import { confirm, deletion, type Question } from '../../ctl/confirm.ts'
import type { Context, HostProgram } from '../../ctl/context.ts'
import type { Fact } from '../../ctl/facts.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { understand } from '../../ctl/reply.ts'
import type { Column } from '../../ctl/table.ts'
import { count, moment, oneLine } from '../../ctl/text.ts'
import type { EdgeHostDevice } from '../schemas/edge-hosts.ts'
import { equals, onlyOne } from './find.ts'
import { findScopes, listScopes, queryOf, showScopes, type Scope, type ScopeRow } from './scopes.ts'

const path = '/v1/edgehosts'

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

export const listHosts = showScopes<EdgeHostDevice>(path, layout)

export async function showHost({ client, line, output }: Context<'project'>): Promise<undefined> {
  const found = await findHost(client, line.arguments[0] ?? '', line.options.project)
  const { scope } = found
  // The list leaves long fields out.
  const item = await client.get<EdgeHostDevice>(pathOf(found), ['metadata', 'spec', 'status'])
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

interface Change {
  /** What is asked without `--yes`. */
  readonly question: (name: string) => Question
  readonly send: (client: Client, host: Row) => Promise<unknown>
  readonly done: (name: string) => string
}

/** A command that changes the host that its word names. */
const change =
  ({ question, send, done }: Change): HostProgram<'project' | 'yes'> =>
  async ({ client, line, output, terminal }) => {
    const host = await findHost(client, line.arguments[0] ?? '', line.options.project)
    const name = understand(() => oneLine(host.item.metadata.name))
    if (line.options.yes === undefined) confirm(terminal, question(name))
    await send(client, host)
    output.note(done(name))
    return undefined
  }

export const acceptHost = change({
  question: (name) => ({
    what: `Of the hosts with the key of ${name}, the one that logs in next is accepted; the other is refused from then on.`,
    ask: 'Go on?',
    done: 'changed',
  }),
  send: (client, host) => client.change('PUT', pathOf(host, '/duplicate'), { action: 'acceptNext' }),
  done: (name) => `The next login of ${name} is accepted.`,
})

export const deleteHost = change({
  question: (name) =>
    deletion(`The host ${name} will be removed from the platform and refused from then on.`),
  send: (client, host) => client.change('DELETE', pathOf(host)),
  done: (name) => `The host ${name} is removed from the platform.`,
})

const pathOf = ({ scope, item }: Row, rest = '') =>
  `${path}/${encodeURIComponent(item.metadata.uid)}${rest}?${new URLSearchParams(queryOf(scope)).toString()}`

/** The host that a word names, by its uid or its name, and where it is. */
async function findHost(client: Client, word: string, project: string | undefined): Promise<Row> {
  const scopes = await findScopes(client, project)
  const filters = `${equals('metadata.uid', word)}OR${equals('metadata.name', word)}`
  const { items } = await listScopes<EdgeHostDevice>(client, scopes, { path, query: { filters }, limit: 0 })
  const uid = onlyOne(
    { noun: 'host', list: 'host list' },
    word,
    items.map(({ item }) => item.metadata.uid),
  )
  return items.find(({ item }) => item.metadata.uid === uid) as Row
}
