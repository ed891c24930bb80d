import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { AuditFilters, AuditView } from '../../../audit/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Card, Command, More, OnlyAdministrators, PageHeader, Shown } from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { OutcomeBadge, RecordMessage, VerifyTrail } from '../../shared/trail.tsx'
import { useList, useReading } from '../../shared/read.ts'
import { isAdmin } from '../../shared/session.ts'
import { api, DownloadButton, remote, text } from '../host.tsx'

const path = `${api}/edgehosts/current/audits`

export function Audit() {
  const t = text.value.audit
  if (isAdmin.value)
    return (
      <>
        <PageHeader
          title={t.title}
          aside={
            <VerifyTrail path={`${path}/verify`}>
              <DownloadButton path={`${path}/download`}>{t.download}</DownloadButton>
            </VerifyTrail>
          }
        />
        <Trail />
        <Command command={remote('audit list')} />
      </>
    )
  return (
    <>
      <PageHeader title={t.title} />
      <OnlyAdministrators />
    </>
  )
}

function Trail() {
  const t = text.value.audit
  const [user, setUser] = useState('')
  const filters = useReading<Static<typeof AuditFilters>>(`${path}/filters`, 60_000)
  const query = user === '' ? '' : `?userUid=${encodeURIComponent(user)}`
  const audits = useList<AuditView>(`${path}${query}`, 10_000)
  return (
    <Card
      title={t.trail}
      icon="audit"
      aside={
        <label>
          <span class="hidden">{t.user}</span>
          <select value={user} onChange={(event) => setUser(event.currentTarget.value)}>
            <option value="">{t.all}</option>
            {(filters.body?.userUid ?? []).map(({ label, value }) => (
              <option key={value} value={value}>
                {plain(label)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Shown reading={audits}>
        {() =>
          audits.items.length === 0 ? (
            <p class="dim pad">{t.none}</p>
          ) : (
            <>
              <Table
                title={t.trail}
                file="audit"
                items={audits.items}
                keyOf={({ metadata }) => String(metadata.number)}
                columns={[
                  {
                    title: t.time,
                    cell: ({ metadata }) => <span class="nowrap">{day(metadata.createTimestamp)}</span>,
                  },
                  {
                    title: t.user,
                    cell: ({ spec: { actor } }) => (
                      <>
                        {actor.actorType === 'system' ? t.system : plain(actor.uid)}
                        {actor.address !== undefined && <span class="dim"> {actor.address}</span>}
                      </>
                    ),
                  },
                  {
                    title: t.what,
                    cell: ({ spec: { message, resource } }) => (
                      <RecordMessage message={message}>
                        {resource.kind}
                        {resource.name !== undefined && ` ${plain(resource.name)}`}
                      </RecordMessage>
                    ),
                  },
                  {
                    title: t.outcome,
                    cell: ({ spec: { outcome } }) => <OutcomeBadge outcome={outcome} />,
                  },
                ]}
              />
              <More list={audits} />
            </>
          )
        }
      </Shown>
    </Card>
  )
}
