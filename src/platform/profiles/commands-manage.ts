import { confirmDeletion } from '../../ctl/confirm.ts'
import { type Context, refusalOf } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Fact, renderTable, type Column, moment, oneLine } from '../../ctl/layout.ts'
import { readBody } from '../../ctl/request-body.ts'
import { understand, parseBody, readReply } from '../../ctl/reply.ts'
import type { ClusterProfile, Variable } from './schemas.ts'
import {
  findReadVersion,
  findVersion,
  profileKind,
  findReadScopes,
  showScopes,
  type ScopeRow,
  findUid,
  projects,
} from '../commands/find.ts'

const layout: readonly Column<ScopeRow<ClusterProfile>>[] = [
  { title: 'NAME', read: ({ item }) => item.metadata.name, isFlexible: true },
  { title: 'VERSION', read: ({ item }) => item.spec.version },
  { title: 'STATE', read: ({ item }) => (item.status.isPublished ? 'published' : 'draft') },
  { title: 'TYPE', read: ({ item }) => templateOf(item)?.type },
  { title: 'PACKS', read: ({ item }) => String(templateOf(item)?.packs.length ?? 0) },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

const templateOf = ({ spec }: ClusterProfile) => spec.published ?? spec.draft

export const listProfiles = showScopes<ClusterProfile>(profileKind.path, layout, findReadScopes)

export async function showProfile({ client, line, output }: Context<'project'>): Promise<undefined> {
  const { scope, item, pathOf } = await findReadVersion<ClusterProfile>(
    client,
    profileKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  // Programs get the values of the packs too.
  const profile =
    output.format === 'table' ? item : await client.get<ClusterProfile>(pathOf(), ['metadata', 'spec'])
  await output.show(profile, (paper) => renderFacts(factsOf(item, scope.name), paper))
  return undefined
}

function factsOf(profile: ClusterProfile, project: string): Fact[] {
  const { metadata, spec, status } = profile
  const { type = '', packs = [] } = templateOf(profile) ?? {}
  const { inUseClusters } = status
  return [
    { label: 'Name', lines: [metadata.name] },
    { label: 'Version', lines: [`${spec.version}, ${status.isPublished ? 'published' : 'draft'}`] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(project === '' ? [] : [{ label: 'Project', lines: [project] }]),
    { label: 'Type', lines: [type] },
    {
      label: 'Packs',
      lines: packs.map(
        ({ name, tag, layer, packUid, type: kind }) =>
          `${name} ${tag} (${layer})${packUid === '' && kind !== 'manifest' ? ', not uploaded' : ''}`,
      ),
    },
    ...(inUseClusters.length === 0
      ? []
      : [{ label: 'Clusters', lines: inUseClusters.map(({ name }) => name) }]),
    { label: 'Imported', lines: [moment(metadata.creationTimestamp)] },
    { label: 'Changed', lines: [moment(metadata.lastModifiedTimestamp)] },
  ]
}

const variableLayout: readonly Column<Variable>[] = [
  { title: 'NAME', read: ({ name }) => name, isFlexible: true },
  { title: 'FORMAT', read: ({ format }) => format },
  { title: 'DEFAULT', read: ({ defaultValue }) => defaultValue, isFlexible: true },
  {
    title: 'RULES',
    read: ({ required, immutable, hidden, isSensitive }) =>
      Object.entries({ required, immutable, hidden, sensitive: isSensitive })
        .flatMap(([name, isSet]) => (isSet === true ? [name] : []))
        .join(', '),
    isFlexible: true,
  },
]

export async function profileVariables({
  client,
  line,
  output,
}: Context<'project' | 'set-from'>): Promise<undefined> {
  const { 'set-from': file, project } = line.options
  const wanted = file === undefined ? undefined : parseVariables(readBody(file, '--set-from'))
  const find = wanted === undefined ? findReadVersion : findVersion
  const { pathOf, item } = await find<ClusterProfile>(client, profileKind, line.arguments[0] ?? '', project)
  const path = pathOf('/variables')
  if (wanted !== undefined) {
    await client.change('PUT', path, wanted)
    output.note(`The variables of ${understand(() => oneLine(item.metadata.name))} are replaced.`)
    return undefined
  }
  const found = await client.get<{ variables: Variable[] }>(path, ['variables'])
  await output.show(found, ({ columns }) => renderTable(found.variables, variableLayout, columns))
  return undefined
}

function parseVariables(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString())
  } catch (error) {
    throw new Failure('usage', '--set-from: the file is not JSON', { cause: error })
  }
}

export async function deleteProfile({
  client,
  line,
  output,
  terminal,
}: Context<'project' | 'yes'>): Promise<undefined> {
  const { item, pathOf } = await findVersion<ClusterProfile>(
    client,
    profileKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  const name = understand(() => oneLine(`${item.metadata.name} ${item.spec.version}`))
  if (line.options.yes === undefined) confirmDeletion(terminal, `The cluster profile ${name} will go.`)
  await client.change('DELETE', pathOf())
  output.note(`The cluster profile ${name} is deleted.`)
  return undefined
}

// The limit of the platform.
const largestProfile = 33_554_432
// The largest profile is examined on a slow machine.
const examineMs = 400_000

export async function importProfile({
  client,
  line,
  output,
  target,
}: Context<'project' | 'publish'>): Promise<undefined> {
  const [file = ''] = line.arguments
  const { project, publish } = line.options
  const body = readBody(file, 'FILE', largestProfile)
  const query = new URLSearchParams({
    publish: String(publish !== undefined),
    ...(project === undefined ? {} : { ProjectUid: await findUid(client, projects, project) }),
  })
  const isJson = /^\s*[{[]/.test(body.subarray(0, 1_024).toString('latin1'))
  const reply = await client.ask({
    method: 'POST',
    path: `${profileKind.path}/import?${query.toString()}`,
    body,
    headers: { 'content-type': isJson ? 'application/json' : 'application/yaml' },
    timeoutMs: examineMs,
  })
  if (reply.status !== 201) throw refusalOf(target, reply)
  const made = parseBody<{ uid: string }>(reply, ['uid'])
  await output.show(made, () => `${oneLine(made.uid)}\n`)
  return undefined
}

export async function exportProfile({
  client,
  line,
  output,
  target,
}: Context<'project'>): Promise<undefined> {
  const { pathOf } = await findVersion<ClusterProfile>(
    client,
    profileKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  const format = output.format === 'yaml' ? 'yaml' : 'json'
  const message = await client.open({ method: 'GET', path: pathOf('/export', { format }) })
  if (message.statusCode !== 200) throw refusalOf(target, await readReply(message))
  // As it arrives: it may be larger than other replies.
  for await (const chunk of message as AsyncIterable<Buffer>) output.write(chunk)
  return undefined
}
