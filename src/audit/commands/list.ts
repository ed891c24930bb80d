import type { HostProgram } from '../../ctl/context.ts'
import type { Column } from '../../ctl/table.ts'
import { moment } from '../../ctl/text.ts'
import type { AuditView } from '../schemas.ts'
import { showRecords } from './show-records.ts'
import type { RecordOption } from './trail-commands.ts'

const layout: readonly Column<AuditView>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.createTimestamp) },
  { title: 'WHO', read: ({ spec: { actor } }) => actor.uid || actor.actorType, isFlexible: true },
  { title: 'FROM', read: ({ spec: { actor } }) => actor.address, isFlexible: true },
  { title: 'OUTCOME', read: ({ spec }) => spec.outcome },
  { title: 'WHAT', read: ({ spec }) => spec.message, isFlexible: true },
]

/** `edgehostctl audit list`. */
export const listAudits =
  (path: string): HostProgram<RecordOption> =>
  (context) =>
    showRecords(context, { path, layout })
