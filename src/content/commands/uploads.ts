import type { ContentUpload } from '../schemas.ts'
import type { Context } from '../../ctl/context.ts'
import { showList } from '../../ctl/list.ts'
import type { Column } from '../../ctl/table.ts'
import { moment, span } from '../../ctl/text.ts'
import { amount } from '../../ctl/amount.ts'

const uploadsPath = '/v1/edge-mgmt/content/uploads'

const layout: readonly Column<ContentUpload>[] = [
  { title: 'UID', read: ({ uid }) => uid },
  { title: 'NAME', read: ({ name }) => name, isFlexible: true },
  { title: 'PHASE', read: ({ phase }) => phase },
  { title: 'RECEIVED', read: ({ receivedBytes }) => amount(receivedBytes) },
  { title: 'TOTAL', read: ({ totalBytes }) => (totalBytes === undefined ? undefined : amount(totalBytes)) },
  {
    title: 'LEFT',
    read: ({ remainingSeconds }) => (remainingSeconds === undefined ? undefined : span(remainingSeconds)),
  },
  { title: 'LAST ACTIVITY', read: ({ lastActivityAt }) => moment(lastActivityAt), isFlexible: true },
]

/** `edgehostctl content uploads`. */
export const listUploads = showList<ContentUpload>(uploadsPath, layout)

/** `edgehostctl content discard`. */
export async function discardUpload({ client, line, output }: Context): Promise<undefined> {
  const [uid = ''] = line.arguments
  await client.change('DELETE', `${uploadsPath}/${encodeURIComponent(uid)}`)
  output.note('The upload is gone, and what the host had of it.')
  return undefined
}
