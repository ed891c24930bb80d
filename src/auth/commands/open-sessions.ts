import type { SessionItem } from '../schemas.ts'
import { showList } from '../../ctl/list.ts'
import type { Context } from '../../ctl/client.ts'
import { type Column, moment } from '../../ctl/layout.ts'
import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'

const sessionsPath = '/v1/users/sessions'

const layout: readonly Column<SessionItem>[] = [
  { title: 'UID', read: ({ uid }) => uid },
  {
    title: 'USER',
    read: ({ userName, isCurrent }) => (isCurrent ? `${userName} *` : userName),
    isFlexible: true,
  },
  { title: 'ROLE', read: ({ role }) => role },
  { title: 'FROM', read: ({ address }) => address, isFlexible: true },
  { title: 'SINCE', read: ({ creationTimestamp }) => moment(creationTimestamp), isFlexible: true },
  { title: 'UNTIL', read: ({ expirationTimestamp }) => moment(expirationTimestamp), isFlexible: true },
]

export const listSessions = showList<SessionItem>(sessionsPath, layout)

export async function revokeSession({ client, line, output }: Context): Promise<undefined> {
  const [uid = ''] = line.arguments
  await client.change('DELETE', `${sessionsPath}/${encodeURIComponent(uid)}`)
  output.note('The session has ended.')
  return undefined
}

/** Runs the daemon's own program, which knows the state folder: a running daemon would require a token. */
export const revokeAll: Program = async (line) => {
  requireLocalRoot(line, { does: 'works on', reason: 'the state of the daemon is for root' })
  become('main.cjs', ['--end-sessions'])
}
