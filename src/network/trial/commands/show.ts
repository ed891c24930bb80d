import type { Context } from '../../../ctl/client.ts'
import { moment, renderTable, type Column } from '../../../ctl/layout.ts'
import type { NetworkChange } from '../../schemas.ts'

const path = '/v1/edge-mgmt/network/changes'

const layout: readonly Column<NetworkChange>[] = [
  { title: 'UID', read: ({ uid }) => uid },
  { title: 'CHANGE', read: ({ summary }) => summary, isFlexible: true },
  {
    title: 'STATE',
    read: ({ state, reason }) => (reason === undefined ? state : `${state} (${reason})`),
    isFlexible: true,
  },
  { title: 'SINCE', read: ({ creationTimestamp }) => moment(creationTimestamp) },
  {
    title: 'TAKEN BACK AT',
    read: ({ state, deadlineTimestamp }) =>
      state === 'applying' || state === 'trial' ? moment(deadlineTimestamp) : '',
  },
  { title: 'BY', read: ({ requestedBy }) => requestedBy },
]

/** `edgehostctl network changes`. */
export async function listChanges({ client, output }: Context): Promise<undefined> {
  const found = await client.get<{ items: NetworkChange[] }>(path, ['items'])
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  for (const { uid, message, lost } of found.items) {
    if (message !== undefined) output.note(`${uid}: ${message}`)
    for (const each of lost ?? []) output.note(`${uid}: lost in the trial: ${each}`)
  }
  return undefined
}

const act = (action: 'confirm' | 'revert', done: string) =>
  async function ({ client, line, output }: Context): Promise<undefined> {
    const [uid = ''] = line.arguments
    await client.change('POST', `${path}/${encodeURIComponent(uid)}/actions/${action}`)
    output.note(done)
    return undefined
  }

/** `edgehostctl network confirm UID`. */
export const confirmChange = act('confirm', 'The change is kept.')

/** `edgehostctl network revert UID`. */
export const revertChange = act('revert', 'The change is being taken back; see: edgehostctl network changes')
