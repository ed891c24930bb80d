import type { Context } from '../../ctl/context.ts'
import { parseLimit } from '../../ctl/limit.ts'
import { filterOf, noteRest } from '../../ctl/list.ts'
import { parsePointInTime } from '../../ctl/point-in-time.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment } from '../../ctl/text.ts'
import type { Audit } from '../schemas/audits.ts'
import { findUid, projects, users } from './find.ts'

const layout: readonly Column<Audit>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.creationTimestamp) },
  { title: 'WHO', read: ({ spec: { actor } }) => whoOf(actor), isFlexible: true },
  { title: 'FROM', read: ({ spec: { actor } }) => actor.address, isFlexible: true },
  { title: 'PROJECT', read: ({ spec: { actor } }) => actor.project?.name, isFlexible: true },
  { title: 'OUTCOME', read: ({ spec }) => spec.outcome },
  { title: 'WHAT', read: ({ spec }) => spec.actionMsg, isFlexible: true },
]

const whoOf = ({ user, serviceName, actorType }: Audit['spec']['actor']): string =>
  (user?.emailId ?? serviceName) || actorType

type Names = 'limit' | 'filter' | 'since' | 'until' | 'by' | 'project'

export async function listAudits({ client, line, output }: Context<Names>): Promise<undefined> {
  const { since, until, by, project } = line.options
  const now = Date.now()
  const query = {
    ...filterOf(line),
    ...(since === undefined ? {} : { startTime: parsePointInTime('--since', since, now) }),
    ...(until === undefined ? {} : { endTime: parsePointInTime('--until', until, now) }),
    ...(by === undefined ? {} : { userUid: await findUid(client, users, by) }),
    ...(project === undefined ? {} : { projectUid: await findUid(client, projects, project) }),
  }
  const found = await client.list<Audit>('/v1/audits', query, parseLimit(line, 50))
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  const { listmeta, items } = found
  if (listmeta.continue !== '') noteRest(output, items.length, listmeta.count)
  return undefined
}
