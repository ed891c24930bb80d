import { useEffect, useState } from 'preact/hooks'
import type { EdgeHostDevice } from '../../../platform/hosts/schemas.ts'
import { plain, span, time } from '../../shared/format.ts'
import {
  AdminButton,
  Badge,
  Card,
  Choice,
  Command,
  Empty,
  Entry,
  PagedList,
  PageHeader,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { usePages, useReading } from '../../shared/read.ts'
import { hostNow, lastContact } from '../../shared/request.ts'
import { hrefOf, placeProject } from '../../shared/shell.tsx'
import { allOf, labelsOf } from '../filter.ts'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { projects } from '../session.ts'
import { ProjectsCard } from './projects-card.tsx'

const path = '/v1/edgehosts'

/** What the list shows of a host; the lists of its hardware are read with the host alone. */
const fields = [
  ...['metadata.name', 'metadata.uid', 'metadata.labels', 'spec.host.hostAddress', 'spec.device.archType'],
  ...['spec.device.os', 'spec.service.version', 'status'],
].join(',')

const states = ['', 'unhealthy', 'healthy', 'silent'] as const
type State = (typeof states)[number]

const orders = {
  // `unhealthy` comes after `healthy`, and that after the empty state of a host that has not been heard.
  problems: 'status.health.state=-1,metadata.name=1',
  name: 'metadata.name=1',
  newest: 'metadata.creationTimestamp=-1',
} as const

/** How a host stands, as the platform knows it. */
export function moodOfHost({ status }: Pick<EdgeHostDevice, 'status'>): Mood {
  if (status.isDuplicate === true) return 'bad'
  if (!status.health) return 'info'
  return status.health.state === 'healthy' ? 'good' : 'bad'
}

/** The state of a host in a word, with its mood. */
export function HostBadge({ host }: { host: Pick<EdgeHostDevice, 'status'> }) {
  const t = text.value.hosts
  const { health, isDuplicate } = host.status
  return (
    <Badge mood={moodOfHost(host)}>
      {isDuplicate === true ? t.twice : health ? t.states[health.state] : t.silent}
    </Badge>
  )
}

/** Age of a report by the clock of the platform. */
export const ageOf = (timestamp: string): string => span((hostNow() - Date.parse(timestamp)) / 1_000)

/** A text that is not asked of the server at each key. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 400)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

/** The hosts of the scope, problems first, with the filters and counts of the server. */
export function HostList() {
  const t = text.value.hosts
  const [state, setState] = useState<State>('')
  const [name, setName] = useState('')
  const [labels, setLabels] = useState('')
  const [order, setOrder] = useState<keyof typeof orders>('problems')
  const byLabel = labelsOf(useSettled(labels))
  const byName = useSettled(name.trim())
  const chosen = [...(byLabel ?? []), ...(byName === '' ? [] : [['metadata.name', byName] as const])]
  const filterFor = (of: State) =>
    allOf([...chosen, ...(of === '' ? [] : [['status.health.state', of === 'silent' ? '' : of] as const])])
  const pathFor = (of: State, more: Readonly<Record<string, string>>) =>
    scoped(path, { filters: filterFor(of), ...more })
  const filter = filterFor(state)
  const hosts = usePages<EdgeHostDevice>(pathFor(state, { fields, orderBy: orders[order] }), 10_000)
  const isFiltered = state !== '' || chosen.length > 0
  const clear = () => {
    setState('')
    setName('')
    setLabels('')
  }
  return (
    <>
      <PageHeader
        title={t.title}
        aside={
          <AdminButton
            kind="primary"
            onClick={() => {
              location.hash = hrefOf('/hosts/connect')
            }}
          >
            {t.connect}
          </AdminButton>
        }
      >
        {hosts.body && t.readAt(time(lastContact.value))}
      </PageHeader>
      <div class="states" role="group" aria-label={t.state}>
        {states.map((each) => (
          <StateButton
            key={each}
            state={each}
            path={pathFor(each, { limit: '1', fields: 'metadata.uid' })}
            isChosen={state === each}
            onChoose={() => setState(each)}
          />
        ))}
      </div>
      <Card
        title={t.title}
        icon="host"
        aside={
          <div class="filters">
            <Entry label={t.filterName} value={name} onChange={setName} />
            <Entry label={t.filterLabel} value={labels} onChange={setLabels} placeholder="hall=3" />
            <Choice
              label={t.order}
              value={order}
              options={[
                ['problems', t.problemsFirst],
                ['name', t.byName],
                ['newest', t.newest],
              ]}
              onChange={setOrder}
            />
          </div>
        }
      >
        <p role="status" class="bad-text">
          {byLabel === undefined && t.badLabels}
        </p>
        <PagedList
          list={hosts}
          lines={6}
          none={
            isFiltered ? (
              <div class="empty">
                <p>{t.noneFound}</p>
                <button type="button" class="plain" onClick={clear}>
                  {t.clear}
                </button>
              </div>
            ) : (
              <Empty icon="host" title={t.none}>
                {t.noneLong}
              </Empty>
            )
          }
        >
          {(items) => <Rows hosts={items} />}
        </PagedList>
      </Card>
      {placeProject.value === undefined && projects.value.length > 0 && <ProjectsCard />}
      <Command
        command={remoteScoped(filter === '' ? 'host list' : `host list --filter ${shellWord(filter)}`)}
      />
    </>
  )
}

const titleOf = (state: State): string => {
  const { all, unhealthy, healthy, silent } = text.value.hosts
  return { '': all, unhealthy, healthy, silent }[state]
}

interface StateButtonProps {
  readonly state: State
  /** Of a list whose count is that of the state. */
  readonly path: string
  readonly isChosen: boolean
  readonly onChoose: () => void
}

/** A state with the number of its hosts, which filters the list by it. */
function StateButton({ state, path: counted, isChosen, onChoose }: StateButtonProps) {
  const { body } = useReading<{ listmeta: { count: number } }>(counted, 30_000)
  const count = body?.listmeta.count
  const isProblem = state === 'unhealthy' && count !== undefined && count > 0
  return (
    <button
      type="button"
      class={isProblem ? 'state bad' : 'state'}
      aria-pressed={isChosen}
      onClick={onChoose}
    >
      <strong>{count ?? '…'}</strong>
      <span>{titleOf(state)}</span>
    </button>
  )
}

function Rows({ hosts }: { hosts: readonly EdgeHostDevice[] }) {
  const t = text.value.hosts
  return (
    <Table
      title={t.title}
      file="hosts"
      items={hosts}
      keyOf={({ metadata }) => metadata.uid}
      columns={[
        {
          title: t.host,
          cell: ({ metadata }) => (
            <>
              <a href={hrefOf(`/hosts/${metadata.uid}`)}>{plain(metadata.name)}</a>
              <Labels labels={metadata.labels} />
            </>
          ),
        },
        {
          title: t.state,
          cell: (host) => (
            <>
              <HostBadge host={host} />
              {host.status.health?.state === 'unhealthy' && (
                <p class="dim">{plain(host.status.health.message)}</p>
              )}
            </>
          ),
        },
        {
          title: t.seen,
          cell: ({ status: { health } }) =>
            health ? t.ago(ageOf(health.lastHeartbeatTimestamp)) : <span class="dim">{t.never}</span>,
        },
        {
          title: t.cluster,
          cell: ({ status: { inUseClusters = [] } }) =>
            inUseClusters.length === 0
              ? '–'
              : inUseClusters.map(({ name, uid }) => (
                  <a key={uid} href={hrefOf(`/clusters/${uid}`)}>
                    {plain(name)}
                  </a>
                )),
        },
        { title: t.address, cell: ({ spec }) => plain(spec.host.hostAddress) },
        {
          title: t.version,
          cell: ({ spec: { service, device } }) => (
            <>
              {plain(service.version ?? '–')}
              <br />
              <span class="dim">
                {[device.os?.family, device.os?.version, device.archType]
                  .filter((each) => each !== undefined && each !== '')
                  .map((each) => plain(each ?? ''))
                  .join(' ')}
              </span>
            </>
          ),
        },
      ]}
    />
  )
}

export const Labels = ({ labels }: { labels: Readonly<Record<string, string>> }) => (
  <>
    {Object.entries(labels).map(([key, value]) => (
      <span key={key} class="tag">
        {key}={value}
      </span>
    ))}
  </>
)
