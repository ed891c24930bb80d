import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine, renderTable, type Column } from '../../ctl/layout.ts'
import type { ManagementInterface } from '../schemas.ts'

const path = '/v1/edge-mgmt/network/management-interface'

type Row = ManagementInterface['candidates'][number] & { readonly isSelected: boolean }

const layout: readonly Column<Row>[] = [
  { title: 'LINK', read: ({ name, isSelected }) => (isSelected ? `${name} *` : name) },
  { title: 'KIND', read: ({ type }) => type },
  { title: 'ADDRESS', read: ({ ipAddress }) => ipAddress },
  { title: 'STATUS', read: ({ status }) => status },
]

/** `edgehostctl network management [NAME]`. */
export async function management({ client, line, output }: Context<'default'>): Promise<undefined> {
  const [named] = line.arguments
  const isDefault = line.options.default !== undefined
  if (named !== undefined && isDefault) throw new Failure('usage', 'NAME and --default exclude each other')
  if (named !== undefined || isDefault) await client.change('PUT', path, { name: named ?? '' })
  const found = await client.get<ManagementInterface>(path, ['selected', 'candidates'])
  const { selected, candidates } = found
  await output.show(found, ({ columns }) =>
    renderTable(
      candidates.map((each) => ({ ...each, isSelected: each.name === selected })),
      layout,
      columns,
    ),
  )
  if (selected === '') output.note('The management interface is the link of the default route.')
  else if (!candidates.some(({ name }) => name === selected))
    output.note(
      `${oneLine(selected)} is chosen, and has no address now; the link of the default route is used until it has one.`,
    )
  return undefined
}
