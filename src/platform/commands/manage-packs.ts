import { amount } from '../../ctl/amount.ts'
import { confirmDeletion } from '../../ctl/confirm.ts'
import type { Context } from '../../ctl/context.ts'
import { renderFacts, type Fact } from '../../ctl/facts.ts'
import { understand } from '../../ctl/reply.ts'
import type { Column } from '../../ctl/table.ts'
import { moment, oneLine } from '../../ctl/text.ts'
import type { PackSummary } from '../schemas/packs.ts'
import { findReadVersion, findVersion, packKind } from './find-version.ts'
import { findReadScopes, showScopes, type ScopeRow } from './scopes.ts'

const layout: readonly Column<ScopeRow<PackSummary>>[] = [
  { title: 'NAME', read: ({ item }) => item.spec.name, isFlexible: true },
  { title: 'VERSION', read: ({ item }) => item.spec.version },
  { title: 'LAYER', read: ({ item }) => item.spec.layer },
  { title: 'PROJECT', read: ({ scope }) => scope.name, isFlexible: true },
  { title: 'SIZE', read: ({ item }) => amount(item.spec.sizeBytes) },
  { title: 'UPLOADED', read: ({ item }) => moment(item.metadata.creationTimestamp), isFlexible: true },
  { title: 'UID', read: ({ item }) => item.metadata.uid },
]

export const listPacks = showScopes<PackSummary>(packKind.path, layout, findReadScopes)

export async function showPack({ client, line, output }: Context<'project'>): Promise<undefined> {
  const { scope, item } = await findReadVersion<PackSummary>(
    client,
    packKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  await output.show(item, (paper) => renderFacts(factsOf(item, scope.name), paper))
  return undefined
}

function factsOf({ metadata, spec }: PackSummary, project: string): Fact[] {
  const { manifests } = spec
  return [
    { label: 'Name', lines: [spec.name] },
    { label: 'Version', lines: [spec.version] },
    { label: 'Display name', lines: [spec.displayName] },
    { label: 'Uid', lines: [metadata.uid] },
    ...(project === '' ? [] : [{ label: 'Project', lines: [project] }]),
    { label: 'Layer', lines: [[spec.layer, spec.addonType].filter(Boolean).join(', ')] },
    { label: 'Clouds', lines: [spec.cloudTypes.join(', ')] },
    ...(manifests.length === 0 ? [] : [{ label: 'Manifests', lines: manifests.map(({ name }) => name) }]),
    { label: 'Size', lines: [amount(spec.sizeBytes)] },
    { label: 'Digest', lines: [spec.digest] },
    { label: 'Uploaded', lines: [moment(metadata.creationTimestamp)] },
  ]
}

export async function deletePack({
  client,
  line,
  output,
  terminal,
}: Context<'project' | 'yes'>): Promise<undefined> {
  const found = await findVersion<PackSummary>(
    client,
    packKind,
    line.arguments[0] ?? '',
    line.options.project,
  )
  const name = understand(() => oneLine(`${found.item.spec.name} ${found.item.spec.version}`))
  if (line.options.yes === undefined) confirmDeletion(terminal, `The pack ${name} will go.`)
  await client.change('DELETE', found.pathOf())
  output.note(`The pack ${name} is deleted.`)
  return undefined
}
