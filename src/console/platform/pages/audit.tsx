import { useState } from 'preact/hooks'
import type { Audit as AuditRecord } from '../../../platform/audits/schemas.ts'
import type { User } from '../../../platform/users/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Card, Choice, Command, Entry, PagedList, PageHeader } from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { OutcomeBadge, RecordMessage, VerifyTrail } from '../../shared/trail.tsx'
import { usePages, useReading } from '../../shared/read.ts'
import { isTenantAdmin, nameOfProject, remote, shellWord, text } from '../platform.ts'
import { projects } from '../session.ts'
import { TenantOnly } from './tenant-only.tsx'

const path = '/v1/audits'

const actions = ['create', 'update', 'delete', 'action', 'activity'] as const

/** The audit trail of the platform. */
export function Audit() {
  const t = text.value.audit
  if (!isTenantAdmin()) return <TenantOnly title={t.title} command="audit list" />
  return (
    <>
      <PageHeader title={t.title} aside={<VerifyTrail path={`${path}/verify`} />} />
      <Trail />
    </>
  )
}

/** The beginning of a day of this device, or its end; empty for no day, and for one beyond what a time can be. */
function timeOf(date: string, clock: string): string {
  const at = new Date(`${date}T${clock}`)
  return date === '' || Number.isNaN(at.getTime()) ? '' : at.toISOString()
}

function Trail() {
  const t = text.value.audit
  const [user, setUser] = useState('')
  const [project, setProject] = useState('')
  const [action, setAction] = useState<'' | (typeof actions)[number]>('')
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const users = useReading<{ items: readonly User[] }>(
    '/v1/users?orderBy=metadata.name=1&fields=metadata.name,metadata.uid',
    60_000,
  )
  const known = (users.body?.items ?? []).map(({ metadata: { uid, name } }) => [uid, name] as const)
  const query = new URLSearchParams(
    Object.entries({
      userUid: user,
      projectUid: project,
      actionType: action,
      startTime: timeOf(from, '00:00:00'),
      endTime: timeOf(to, '23:59:59.999'),
    }).filter(([, value]) => value !== ''),
  )
  const audits = usePages<AuditRecord>(query.size === 0 ? path : `${path}?${query.toString()}`, 10_000)
  const command = [
    'audit list',
    ...(user === '' ? [] : [`--by ${known.find(([uid]) => uid === user)?.[1] ?? user}`]),
    ...(project === '' ? [] : [`--project ${shellWord(nameOfProject(project))}`]),
  ]
  return (
    <>
      <Card
        title={t.trail}
        icon="audit"
        aside={
          <div class="filters">
            <Choice label={t.user} value={user} options={[['', t.all], ...known]} onChange={setUser} />
            <Choice
              label={t.project}
              value={project}
              options={[
                ['', t.all],
                ...projects.value.map(({ metadata }) => [metadata.uid, metadata.name] as const),
              ]}
              onChange={setProject}
            />
            <Choice
              label={t.action}
              value={action}
              options={[['', t.all], ...actions.map((each) => [each, t.actions[each]] as const)]}
              onChange={setAction}
            />
            <Entry label={t.from} type="date" value={from} onChange={setFrom} />
            <Entry label={t.to} type="date" value={to} onChange={setTo} />
          </div>
        }
      >
        <PagedList list={audits} lines={6} none={<p class="dim pad">{t.none}</p>}>
          {(items) => <Records records={items} />}
        </PagedList>
      </Card>
      <Command command={remote(command.join(' '))} />
    </>
  )
}

function Records({ records }: { records: readonly AuditRecord[] }) {
  const t = text.value.audit
  return (
    <Table
      title={t.trail}
      file="audit"
      items={records}
      keyOf={({ metadata }) => String(metadata.number)}
      columns={[
        {
          title: t.time,
          cell: ({ metadata }) => <span class="nowrap">{day(metadata.creationTimestamp)}</span>,
        },
        {
          title: t.user,
          cell: ({ spec: { actor } }) => (
            <>
              {plain(
                actor.user?.emailId ?? (actor.actorType === 'system' ? t.system : (actor.serviceName ?? '')),
              )}
              {actor.address !== undefined && <span class="dim"> {actor.address}</span>}
            </>
          ),
        },
        {
          title: t.what,
          cell: ({ spec: { actionMsg, resource, actor } }) => (
            <RecordMessage message={actionMsg}>
              {resource.kind}
              {resource.name !== undefined && ` ${plain(resource.name)}`}
              {actor.project && ` · ${plain(actor.project.name)}`}
            </RecordMessage>
          ),
        },
        {
          title: t.outcome,
          cell: ({ spec: { outcome } }) => <OutcomeBadge outcome={outcome} />,
        },
      ]}
    />
  )
}
