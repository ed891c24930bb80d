import { showRecords } from '../../audit/commands/show-records.ts'
import type { RecordOption } from '../../audit/commands/trail-commands.ts'
import type { HostProgram } from '../../ctl/client.ts'
import { type Column, moment } from '../../ctl/layout.ts'
import type { Audit } from './schemas.ts'
import { findUid, projects, users } from '../commands/find.ts'

const layout: readonly Column<Audit>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.creationTimestamp) },
  { title: 'WHO', read: ({ spec: { actor } }) => whoOf(actor), isFlexible: true },
  { title: 'FROM', read: ({ spec: { actor } }) => actor.address, isFlexible: true },
  { title: 'PROJECT', read: ({ spec: { actor } }) => actor.project?.name, isFlexible: true },
  { title: 'OUTCOME', read: ({ spec }) => spec.outcome },
  { title: 'WHAT', read: ({ spec }) => spec.actionMsg, isFlexible: true },
]

// A host that was refused may have no name.
const whoOf = ({ user, serviceName, actorType }: Audit['spec']['actor']): string =>
  (user?.emailId ?? serviceName) || (actorType === 'service' ? 'host' : actorType)

/** `audit list`. */
export const listAudits =
  (path: string): HostProgram<RecordOption | 'by' | 'project'> =>
  async (context) => {
    const { client, line } = context
    const { by, project } = line.options
    const query = {
      ...(by === undefined ? {} : { userUid: await findUid(client, users, by) }),
      ...(project === undefined ? {} : { projectUid: await findUid(client, projects, project) }),
    }
    return showRecords(context, { path, layout, query })
  }
