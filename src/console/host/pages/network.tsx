import { useState } from 'preact/hooks'
import type {
  BondList,
  BridgeList,
  ManagementInterface,
  NetworkChange,
  NicSummaryList,
  VlanList,
} from '../../../network/schemas.ts'
import type { ServiceStatus } from '../../../service/schemas.ts'
import { day, plain, span } from '../../shared/format.ts'
import {
  AdminButton,
  Badge,
  Card,
  ChangeForm,
  Command,
  Fingerprint,
  Note,
  PageHeader,
  Problem,
  Shown,
  useAction,
  useSeconds,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useReading, type Reading } from '../../shared/read.ts'
import { change, isReachable } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { placeParts } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { hostPath, networkPath as path, remote, text } from '../host.tsx'
import {
  begun,
  DeleteLink,
  isMade,
  LinkDialog,
  madeSorts,
  type Begun,
  type Link,
  type MadeSort,
} from './network-link.tsx'

export function Network() {
  const t = text.value.network
  const nics = useReading<NicSummaryList>(`${path}/interfaces`, 10_000)
  const bonds = useReading<BondList>(`${path}/bonds`, 10_000)
  const vlans = useReading<VlanList>(`${path}/vlans`, 10_000)
  const bridges = useReading<BridgeList>(`${path}/bridges`, 10_000)
  const changes = useReading<{ readonly items: readonly NetworkChange[] }>(`${path}/changes`, 3_000)
  const [edited, setEdited] = useState<Link | MadeSort>()
  const [deleted, setDeleted] = useState<Link>()
  const links: readonly Link[] = [
    ...(nics.body?.interfaces ?? []).map((nic) => ({ ...nic, sort: nic.kind })),
    ...(bonds.body?.items ?? []).map((bond) => ({ ...bond, sort: 'bond' as const })),
    ...(vlans.body?.items ?? []).map((vlan) => ({ ...vlan, sort: 'vlan' as const })),
    ...(bridges.body?.items ?? []).map((bridge) => ({ ...bridge, sort: 'bridge' as const })),
  ]
  const open = changes.body?.items.find(({ state }) => isOpen(state))
  const [, linked] = placeParts.value
  const shown = open ?? changes.body?.items.find(({ uid }) => uid === linked)
  // Read before a change: at the new address the browser asks for it, when this page cannot ask the host any more.
  const status = useReading<ServiceStatus>(isAdmin.value ? `${hostPath}/status` : undefined, 10_000)
  const problems = [nics, bonds, vlans, bridges].flatMap(({ body }) => body?.problems ?? [])
  return (
    <>
      <PageHeader title={t.title} />
      {begun.value && !isReachable.value ? (
        <Moved begun={begun.value} fingerprint={status.body?.certificate.fingerprint} />
      ) : (
        shown && <Trial change={shown} status={status.body} onChange={changes.again} />
      )}
      {[...new Set(problems)].map((problem) => (
        <Note key={problem} mood="warning">
          <p>{plain(problem)}</p>
        </Note>
      ))}
      <Card
        title={t.links}
        icon="network"
        aside={
          <div class="buttons">
            {madeSorts.map((sort) => (
              <AdminButton
                key={sort}
                kind="plain small"
                isOff={open !== undefined}
                onClick={() => setEdited(sort)}
              >
                {t.add(t.kinds[sort] ?? sort)}…
              </AdminButton>
            ))}
          </div>
        }
      >
        <Shown reading={nics}>
          {() => (
            <Links
              links={links}
              canChange={open === undefined}
              onEdit={(link) => setEdited(link)}
              onDelete={(link) => setDeleted(link)}
            />
          )}
        </Shown>
      </Card>
      <Management />
      <Changes changes={changes} />
      <Command command={remote('network list')} />
      {edited && (
        <LinkDialog
          link={typeof edited === 'string' ? undefined : edited}
          sort={typeof edited === 'string' ? edited : edited.sort}
          others={links}
          onClose={() => {
            setEdited(undefined)
            changes.again()
          }}
        />
      )}
      {deleted && (
        <DeleteLink
          link={deleted}
          onClose={() => {
            setDeleted(undefined)
            changes.again()
          }}
        />
      )}
    </>
  )
}

const isOpen = (state: NetworkChange['state']) =>
  state === 'applying' || state === 'trial' || state === 'confirming' || state === 'reverting'

interface LinksProps {
  readonly links: readonly Link[]
  readonly canChange: boolean
  readonly onEdit: (link: Link) => void
  readonly onDelete: (link: Link) => void
}

function Links({ links, canChange, onEdit, onDelete }: LinksProps) {
  const t = text.value.network
  return (
    <Table
      title={t.links}
      items={links}
      keyOf={({ name }) => name}
      columns={[
        {
          title: t.link,
          cell: (link) => (
            <>
              {link.name} <span class="tag">{t.kinds[link.sort]}</span>
              <br />
              <code class="dim">{link.mac}</code>
              {'members' in link && link.members.length > 0 && (
                <span class="dim"> {t.of(link.members.join(', '))}</span>
              )}
            </>
          ),
        },
        { title: t.address, cell: (link) => <Addresses link={link} /> },
        { title: t.gateway, cell: ({ gateway }) => gateway || '–' },
        {
          title: t.state,
          cell: ({ status, configStatus }) => (
            <>
              <Badge mood={status === 'up' ? 'good' : status === 'down' ? 'warning' : 'info'}>{status}</Badge>
              <span class="dim"> {plain(configStatus)}</span>
            </>
          ),
        },
        { title: t.owner, cell: ({ owner }) => owner },
        {
          title: t.configure,
          isAction: true,
          cell: (link) => (
            <>
              <AdminButton
                kind="plain small"
                isOff={!link.isWritable || !canChange}
                onClick={() => onEdit(link)}
              >
                {t.configure}…
              </AdminButton>{' '}
              {isMade(link.sort) && (
                <AdminButton
                  kind="plain small"
                  isOff={!link.isWritable || !canChange}
                  onClick={() => onDelete(link)}
                >
                  {t.delete}…
                </AdminButton>
              )}
              {link.notWritableReason !== undefined && (
                <span class="dim"> {plain(link.notWritableReason)}</span>
              )}
            </>
          ),
        },
      ]}
    />
  )
}

function Addresses({ link }: { link: Link }) {
  const shown = link.addresses.filter(({ scope }) => scope === 'global')
  if (shown.length === 0) return <span class="dim">{text.value.network.noAddress}</span>
  return (
    <>
      {shown.map(({ address, prefixLength }) => (
        <div key={address}>
          {address}
          <span class="dim">/{prefixLength}</span>
        </div>
      ))}
    </>
  )
}

function Management() {
  const t = text.value.network
  const reading = useReading<ManagementInterface>(`${path}/management-interface`, 30_000)
  const [name, setName] = useState<string>()
  const action = useAction(
    () => change('PUT', `${path}/management-interface`, { name: name ?? '' }),
    () => {
      setName(undefined)
      reading.again()
    },
  )
  return (
    <Card title={t.management} icon="host">
      <Shown reading={reading} lines={1}>
        {({ selected, candidates }) => (
          <ChangeForm action={action} submit={name !== undefined && name !== selected ? t.save : undefined}>
            <label class="field">
              <span class="dim">{t.managementLong}</span>
              <select
                disabled={!isAdmin.value}
                value={name ?? selected}
                onChange={(event) => setName(event.currentTarget.value)}
              >
                <option value="">{t.byRoute}</option>
                {candidates.map(({ name: candidate, ipAddress }) => (
                  <option key={candidate} value={candidate}>
                    {[candidate, ipAddress].filter(Boolean).join(' · ')}
                  </option>
                ))}
              </select>
            </label>
          </ChangeForm>
        )}
      </Shown>
    </Card>
  )
}

const moodOfChange: Readonly<Record<NetworkChange['state'], Mood>> = {
  applying: 'info',
  trial: 'warning',
  confirming: 'info',
  confirmed: 'good',
  reverting: 'info',
  reverted: 'info',
  revertFailed: 'bad',
}

function Changes({ changes }: { changes: Reading<{ readonly items: readonly NetworkChange[] }> }) {
  const t = text.value.network
  const items = changes.body?.items ?? []
  if (items.length === 0) return null
  return (
    <Card title={t.changes} icon="audit">
      <Table
        title={t.changes}
        items={items}
        keyOf={({ uid }) => uid}
        columns={[
          { title: t.change, cell: ({ summary }) => plain(summary) },
          {
            title: t.state,
            cell: ({ state, reason, message }) => (
              <>
                <Badge mood={moodOfChange[state]}>{t.states[state]}</Badge>
                <span class="dim">
                  {' '}
                  {[reason && t.reasons[reason], message && plain(message)].filter(Boolean).join(': ')}
                </span>
              </>
            ),
          },
          {
            title: t.by,
            cell: ({ requestedBy, creationTimestamp }) => `${requestedBy}, ${day(creationTimestamp)}`,
          },
        ]}
      />
    </Card>
  )
}

interface WayProps {
  readonly uid: string
  readonly addresses: readonly string[]
  readonly fingerprint: string | undefined
}

/** The ways to the host by its new addresses, and the fingerprint that the browser shows there. */
function NewWay({ uid, addresses, fingerprint }: WayProps) {
  const t = text.value.network
  const others = addresses.filter((address) => address !== location.hostname)
  return (
    <>
      <p>{t.newWay}</p>
      {fingerprint !== undefined && (
        <p>
          <Fingerprint text={fingerprint} />
        </p>
      )}
      <ul>
        {others.map((address) => (
          <li key={address}>
            <a href={newPlace(address, uid)} rel="noreferrer">
              {t.openNew(address)}
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The host has gone to another address, of which this page is told nothing: other origins are not asked. */
function Moved({ begun: { uid, addresses, isDhcp, deadline }, fingerprint }: MovedProps) {
  const t = text.value.network
  const now = useSeconds(true)
  return (
    <section class="hero warning" aria-live="polite">
      <div>
        <h2>{t.trialTitle}</h2>
        {now < deadline && <p>{t.left(span((deadline - now) / 1_000))}</p>}
        <NewWay uid={uid} addresses={addresses} fingerprint={fingerprint} />
        {isDhcp && <p>{t.unknownAddress}</p>}
      </div>
    </section>
  )
}

interface MovedProps {
  readonly begun: Begun
  readonly fingerprint: string | undefined
}

interface TrialProps {
  readonly change: NetworkChange
  readonly status: ServiceStatus | undefined
  readonly onChange: () => void
}

/** The change that is being tried: its time, the link to the new address, and the two ways to end it. */
function Trial({ change: tried, status, onChange }: TrialProps) {
  const t = text.value.network
  const { uid, state, summary, deadlineTimestamp, needsNewWay, lost = [] } = tried
  const now = useSeconds(isOpen(state))
  const act = (action: 'confirm' | 'revert') => () =>
    change('POST', `${path}/changes/${uid}/actions/${action}`)
  const keep = useAction(act('confirm'), onChange)
  const revert = useAction(act('revert'), onChange)
  const error = keep.error ?? revert.error
  const addresses = begun.value?.uid === uid ? begun.value.addresses : (status?.addresses ?? [])
  return (
    <section class={`hero ${moodOfChange[state]}`} aria-live="polite">
      <div>
        <h2>{isOpen(state) ? t.trialTitle : t.states[state]}</h2>
        <p>{plain(summary)}</p>
        {state === 'trial' && <p>{t.left(span((Date.parse(deadlineTimestamp) - now) / 1_000))}</p>}
        {state === 'applying' && <p>{t.applying}</p>}
        {lost.map((each) => (
          <p key={each} class="dim">
            {plain(each)}
          </p>
        ))}
        {state === 'trial' && needsNewWay && (
          <NewWay uid={uid} addresses={addresses} fingerprint={status?.certificate.fingerprint} />
        )}
        {error && <Problem error={error} title={sharedText.value.notDone} />}
        {state === 'trial' && (
          <div class="buttons">
            <AdminButton kind="primary" isOff={keep.isBusy} onClick={() => void keep.run()}>
              {t.keep}
            </AdminButton>
            <AdminButton isOff={revert.isBusy} onClick={() => void revert.run()}>
              {t.revert}
            </AdminButton>
          </div>
        )}
      </div>
    </section>
  )
}

/** The page of the change at another address of this host, without a token. */
const newPlace = (address: string, uid: string) =>
  `https://${address.includes(':') ? `[${address}]` : address}:${location.port || '443'}/#/network/changes/${uid}`
