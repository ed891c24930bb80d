import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import { download } from '../../ctl/download.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { amount, moment, oneLine, plural, renderTable, type Column } from '../../ctl/layout.ts'
import type { FileMetadata, FileMetadataList } from '../schemas.ts'

const path = `${hostPath}/file-download`

const layout: readonly Column<FileMetadata>[] = [
  { title: 'NAME', read: ({ fileName }) => fileName, isFlexible: true },
  { title: 'SIZE', read: ({ size }) => amount(Number(size)) },
  { title: 'CHANGED', read: ({ lastModifiedTimestamp }) => moment(lastModifiedTimestamp) },
]

/** `edgehostctl host files list`. */
export async function listFiles({ client, output }: Context): Promise<undefined> {
  const found = await client.get<FileMetadataList>(`${path}/files`, ['files'])
  await output.show(found, ({ columns }) => renderTable(found.files, layout, columns))
  if (found.omitted !== undefined && output.format === 'table')
    output.note(
      `${plural(found.omitted, 'entry', 'entries')} of the folder ${found.omitted === 1 ? 'is' : 'are'} not offered: only regular files of its first level with one name are`,
    )
  return undefined
}

/** `edgehostctl host files get NAME`. */
export async function getFile(context: Context<'file'>): Promise<undefined> {
  const { line, output } = context
  const [name = ''] = line.arguments
  if (['', '.', '..'].includes(name) || name.includes('/'))
    throw new Failure('usage', 'NAME must be a name of host files list, without folders')
  // The reply to this path is the list.
  if (name === 'files')
    throw new Failure('failed', 'a file that is named files cannot be downloaded; rename it on the host')
  const file = line.options.file ?? name
  await download(context, {
    path: `${path}/${encodeURIComponent(name)}`,
    file,
    what: oneLine(name),
    type: 'application/octet-stream',
  })
  if (file !== '-') output.note(`${oneLine(name)} is in ${oneLine(file)}.`)
  return undefined
}
