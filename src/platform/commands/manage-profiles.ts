import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/context.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { readBody } from '../../ctl/read-body.ts'
import { understand } from '../../ctl/reply.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment, oneLine } from '../../ctl/text.ts'
import type { ClusterProfile, Variable } from '../schemas/profiles.ts'
import { findReadVersion, findVersion, profileKind } from './find-version.ts'
import { findReadScopes, showScopes, type ScopeRow } from './scopes.ts'

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
