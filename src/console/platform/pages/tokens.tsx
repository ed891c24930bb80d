import { useState } from 'preact/hooks'
import type { EdgeToken } from '../../../platform/tokens/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Confirm } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  Command,
  Empty,
  PagedList,
  PageHeader,
  Problem,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { usePages } from '../../shared/read.ts'
import { change, hostNow } from '../../shared/request.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { isTenantAdmin, remote, text } from '../platform.ts'
import { TenantOnly } from './tenant-only.tsx'

const path = '/v1/edgehosts/tokens'

/** Why hosts cannot use a token any more; undefined where they can. */
function endOf({ spec, status }: EdgeToken): 'off' | 'expired' | 'usedUp' | undefined {
  if (!status.isActive) return 'off'
  if (Date.parse(spec.expiry) <= hostNow()) return 'expired'
  return spec.maximumHosts > 0 && status.hosts >= spec.maximumHosts ? 'usedUp' : undefined
}

/** The tokens with which hosts are registered. */
export function Tokens() {
  const t = text.value.tokens
  if (!isTenantAdmin()) return <TenantOnly title={t.title} command="token list" />
  return (
    <>
      <PageHeader
        title={t.title}
        aside={
          <a class="button primary" href={hrefOf('/hosts/connect')}>
            {text.value.connect.make}
          </a>
        }
      >
        {t.long}
      </PageHeader>
      <List />
      <Command command={remote('token list')} />
    </>
  )
}

function List() {
  const t = text.value.tokens
  const tokens = usePages<EdgeToken>(path, 15_000)
  return (
    <Card title={t.title} icon="key">
      <PagedList
        list={tokens}
        none={
          <Empty icon="key" title={t.none}>
            {t.noneLong}
          </Empty>
        }
      >
        {(items) => (
          <Table
            title={t.title}
            file="tokens"
            items={items}
            keyOf={({ metadata }) => metadata.uid}
            columns={[
              { title: t.token, cell: ({ metadata }) => plain(metadata.name) },
              { title: t.begins, cell: ({ spec }) => <code>{spec.token}…</code> },
              {
                title: t.project,
                cell: ({ spec }) => plain(spec.defaultProject?.name ?? text.value.scope.tenant),
              },
              { title: t.hosts, cell: ({ spec, status }) => t.of(status.hosts, spec.maximumHosts) },
              { title: t.until, cell: ({ spec }) => day(spec.expiry) },
              {
                title: t.state,
                cell: (token) => {
                  const end = endOf(token)
                  return <Badge mood={end ? 'warning' : 'good'}>{t[end ?? 'on']}</Badge>
                },
              },
              {
                title: t.actions,
                isAction: true,
                cell: (token) => <Actions token={token} onChange={tokens.again} />,
              },
            ]}
          />
        )}
      </PagedList>
    </Card>
  )
}

function Actions({ token: { metadata, status }, onChange }: { token: EdgeToken; onChange: () => void }) {
  const t = text.value.tokens
  const [isAsking, setAsking] = useState(false)
  const turn = useAction(
    () => change('PUT', `${path}/${metadata.uid}/state`, { isActive: !status.isActive }),
    onChange,
  )
  return (
    <>
      <div class="actions">
        <AdminButton kind="plain small" isOff={turn.isBusy} onClick={() => void turn.run()}>
          {status.isActive ? t.turnOff : t.turnOn}
        </AdminButton>
        <AdminButton kind="plain small" onClick={() => setAsking(true)}>
          {t.delete}…
        </AdminButton>
      </div>
      {turn.error && <Problem error={turn.error} />}
      {isAsking && (
        <Confirm
          title={t.deleteTitle(metadata.name)}
          action={t.delete}
          onConfirm={() => change('DELETE', `${path}/${metadata.uid}`)}
          onClose={() => {
            setAsking(false)
            onChange()
          }}
        >
          <p>{t.deleteLong}</p>
        </Confirm>
      )}
    </>
  )
}
