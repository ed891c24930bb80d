import { useMemo, useState } from 'preact/hooks'
import type { Event, LifecycleEvents } from '../../../cluster/events/schemas.ts'
import type { ClusterDetails } from '../../../cluster/schemas.ts'
import type { EdgeHostInfo } from '../../../host/schemas.ts'
import { day, plain, span } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import { DangerAction, DangerZone } from '../../shared/dialog.tsx'
import {
  Badge,
  Card,
  Command,
  Empty,
  EventLine,
  Note,
  PagedList,
  PageHeader,
  Shown,
  TabPages,
  Tick,
  useSeconds,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { streamState } from '../../shared/changes.ts'
import { drawnItems, usePages, usePartsOf, useReading, type Reading } from '../../shared/read.ts'
import { change, get, ifMatch, isReachable } from '../../shared/request.ts'
import type { StreamState } from '../../shared/stream.ts'
import { placeParts } from '../../shared/shell.tsx'
import { api, clusterPath, events, hostPath, remote, text } from '../host.tsx'
import { ClusterAccess } from './cluster-access.tsx'
import { ChangeCluster, CreateCluster } from './cluster-change.tsx'
import { Applications, Troubles } from './cluster-applications.tsx'
import { Revisions } from './cluster-revisions.tsx'

export function moodOfCluster({ status }: ClusterDetails): Mood {
  if (status.clusterState === 'Error') return 'bad'
  if (status.clusterState !== 'Running') return 'info'
  return status.health.status === 'Healthy' ? 'good' : 'warning'
}

/** The pages of the cluster, by what follows `#/cluster/`. */
export function Cluster() {
  const t = text.value.cluster
  const [part = ''] = placeParts.value
  const host = useReading<EdgeHostInfo>(hostPath, 5_000)
  if (part === 'create') return <CreateCluster />
  if (!host.body)
    return (
      <>
        <PageHeader title={t.title} />
        <Shown reading={host}>{() => null}</Shown>
      </>
    )
  if (!host.body.status.isClusterPhase) return <NoCluster />
  if (part === 'change') return <ChangeCluster />
  const tabs = [
    { path: '', title: t.state, view: Status },
    { path: 'applications', title: t.packs, view: Applications },
    { path: 'revisions', title: text.value.revisions.title, view: Revisions },
    { path: 'access', title: text.value.clusterAccess.title, view: ClusterAccess },
  ] as const
  return <TabPages label={t.title} tabs={tabs} current={part} base="#/cluster" />
}

function NoCluster() {
  const t = text.value.cluster
  return (
    <>
      <PageHeader title={t.title} />
      <Empty
        icon="cluster"
        title={t.none}
        action={
          <div class="buttons center">
            <a class="button" href="#/content">
              {t.toContent}
            </a>
            <a class="button primary" href="#/cluster/create">
              {text.value.create.title}
            </a>
          </div>
        }
      >
        {t.noneLong}
      </Empty>
      <Command command={remote('cluster create --name NAME --definition FILE')} />
    </>
  )
}

function Status() {
  const t = text.value.cluster
  const details = useReading<ClusterDetails>(`${clusterPath}/details?kubeconfig=false`, 10_000)
  const lifecycle = useReading<LifecycleEvents>(`${api}/events/lifecycle`, 600_000)
  const { body } = details
  return (
    <>
      <PageHeader
        title={body ? plain(body.metadata.name ?? '') : t.title}
        aside={
          body && (
            <div class="buttons">
              <Badge mood={moodOfCluster(body)}>{t.states[body.status.clusterState]}</Badge>
              <a class="button" href="#/cluster/change">
                {text.value.create.change}…
              </a>
            </div>
          )
        }
      >
        {body && <Versions details={body} />}
      </PageHeader>
      <State details={details} lifecycle={lifecycle.body} events={events.value} />
      {body && body.status.troubles.length > 0 && <Troubles details={body} />}
      {body && <Nodes details={body} />}
      <Events events={events.value} state={streamState.value} />
      <Command command={remote('cluster watch')} />
      {body && <Danger details={body} />}
    </>
  )
}

function Versions({ details: { status, metadata } }: { details: ClusterDetails }) {
  const t = text.value.cluster
  return (
    <>
      {t.kubernetes}&nbsp;{status.k8sVersion}
      {status.k8sTargetVersion !== undefined && ` (${t.changingTo(status.k8sTargetVersion)})`} · {t.revision}
      &nbsp;{status.revision}
      {metadata.creationTimestamp !== undefined && ` · ${day(metadata.creationTimestamp)}`}
    </>
  )
}

/** Milestones by their stage, with the ones that the cluster has reached. */
function useStages(lifecycle: LifecycleEvents | undefined, events: readonly Event[]) {
  return useMemo(() => {
    const reached = new Set([
      ...events.map(({ type, reason }) => `${type ?? ''} ${reason}`),
      ...(lifecycle?.clusterEvents ?? []).map(({ type, reason }) => `${type} ${reason ?? ''}`),
    ])
    return (lifecycle?.expectedOrder ?? []).map(({ category, conditionsOrder }) => {
      const left = conditionsOrder.filter(({ type, reason }) => !reached.has(`${type} ${reason}`))
      return {
        category,
        all: conditionsOrder.length,
        done: conditionsOrder.length - left.length,
        next: left[0]?.typeLabel,
      }
    })
  }, [lifecycle, events])
}

interface StateProps {
  readonly details: Reading<ClusterDetails>
  readonly lifecycle: LifecycleEvents | undefined
  readonly events: readonly Event[]
}

function State({ details, lifecycle, events }: StateProps) {
  const t = text.value.cluster
  const stages = useStages(lifecycle, events)
  const current = stages.findIndex(({ all, done }) => done < all)
  const hasFailed = details.body?.status.steps.some(({ state }) => state === 'failed') ?? false
  const sum = (key: 'all' | 'done') => stages.reduce((total, stage) => total + stage[key], 0)
  return (
    <Card
      title={t.state}
      icon="cluster"
      aside={stages.length > 0 && <span class="dim">{t.milestones(sum('done'), sum('all'))}</span>}
    >
      {stages.length > 0 && (
        <ol class="stages">
          {stages.map(({ category, all, done, next }, index) => {
            const isCurrent = index === current
            const title = t.stages[category] ?? category
            const kind = done === all ? 'done' : !isCurrent ? '' : hasFailed ? 'failed' : 'current'
            return (
              <li key={category} class={kind} aria-current={isCurrent ? 'step' : undefined}>
                <span class="stage">
                  {kind === 'done' ? (
                    <Icon name="good" />
                  ) : kind === 'failed' ? (
                    <Icon name="bad" />
                  ) : (
                    <b>{index + 1}</b>
                  )}
                  {title}
                </span>
                <progress max={all} value={done} aria-label={title} />
                <span class="dim">
                  {done}/{all}
                  {kind === 'current' && next !== undefined && ` · ${next}`}
                </span>
              </li>
            )
          })}
        </ol>
      )}
      <Shown reading={details} lines={1}>
        {(body) => <Progress details={body} />}
      </Shown>
    </Card>
  )
}

/** The step that failed or runs, and the time that is left. */
function Progress({ details: { status } }: { details: ClusterDetails }) {
  const t = text.value.cluster
  const failed = status.steps.find(({ state }) => state === 'failed')
  const running = status.steps.find(({ state }) => state === 'running')
  const { deadline, pendingRevision } = status
  const now = useSeconds(Boolean(failed ?? running ?? deadline) && isReachable.value)
  const until = (timestamp: string) => span((Date.parse(timestamp) - now) / 1_000)
  return (
    <>
      {failed && (
        <Note mood="bad">
          <strong>{plain(failed.title)}</strong>
          <p>{plain(failed.reason ?? '')}</p>
          <p class="dim">
            {t.failedTries(failed.failures)}
            {failed.nextTryTimestamp !== undefined && ` · ${t.nextTry(until(failed.nextTryTimestamp))}`}
          </p>
        </Note>
      )}
      {running && !failed && (
        <div class="note info">
          <span class="spinner" />
          <div>
            <strong>{plain(running.title)}</strong>
            {running.startTimestamp !== undefined && (
              <p class="dim">{t.since(span((now - Date.parse(running.startTimestamp)) / 1_000))}</p>
            )}
          </div>
        </div>
      )}
      {deadline && (
        <Note mood="warning">
          <p>{(deadline.action === 'takenBack' ? t.takenBack : t.stuck)(until(deadline.timestamp))}</p>
        </Note>
      )}
      {pendingRevision && (
        <Note mood={pendingRevision.outcome === 'held' ? 'warning' : 'info'}>
          <strong>
            {(pendingRevision.outcome === 'held' ? t.heldRevision : t.waitingRevision)(
              pendingRevision.revision,
            )}
          </strong>
          <p>
            {plain(pendingRevision.reason ?? '')}
            {pendingRevision.scheduleAt !== undefined && day(pendingRevision.scheduleAt)}
          </p>
        </Note>
      )}
    </>
  )
}

function Nodes({ details: { status } }: { details: ClusterDetails }) {
  const t = text.value.cluster
  const list = usePartsOf(status.nodePools.flatMap((pool) => pool.nodes))
  if (list.count === 0) return null
  const draw = (nodes: typeof list.items) => (
    <Table
      title={t.nodes}
      file="nodes"
      items={nodes}
      keyOf={({ nodeName }) => nodeName}
      columns={[
        { title: t.node, cell: ({ nodeName }) => nodeName },
        { title: t.address, cell: ({ ipv4 }) => ipv4 ?? '–' },
        { title: t.version, cell: ({ k8sVersion }) => k8sVersion ?? '–' },
        {
          title: t.health,
          cell: ({ health }) => (
            <>
              <Badge mood={health.status === 'Healthy' ? 'good' : 'bad'}>{health.status}</Badge>
              {health.reason !== undefined && <span class="dim"> {plain(health.reason)}</span>}
            </>
          ),
        },
      ]}
    />
  )
  return (
    <Card title={t.nodes} icon="host">
      {list.count === list.items.length ? (
        draw(list.items)
      ) : (
        <PagedList list={list} none={null}>
          {draw}
        </PagedList>
      )}
    </Card>
  )
}

function EventRows({ events }: { events: readonly Event[] }) {
  const t = text.value.cluster
  return (
    <ol class="events" aria-label={`${t.events}, ${t.newest}`}>
      {events.map((event) => (
        <EventLine key={event.metadata.uid} event={event} />
      ))}
    </ol>
  )
}

/** Pages of the events that the host keeps; it filters and counts them. Those of Kubernetes are among them. */
function StoredEvents({ filters, none }: { filters: string; none: string }) {
  const query = filters === '' ? '' : `?filters=${encodeURIComponent(filters)}`
  const list = usePages<Event>(`${clusterPath}/events${query}`, 10_000)
  return (
    <PagedList list={list} none={<p class="dim pad">{none}</p>}>
      {(items) => <EventRows events={items} />}
    </PagedList>
  )
}

const problems = 'severity="Warning" OR severity="Error"'

/** The newest events as they come, or pages of those that the host keeps. */
function Events({ events, state }: { events: readonly Event[]; state: StreamState }) {
  const t = text.value.cluster
  const [onlyProblems, setOnlyProblems] = useState(false)
  const [isWhole, setWhole] = useState(false)
  const states = { live: t.live, connecting: t.connecting, waiting: t.paused }
  return (
    <Card
      title={t.events}
      icon="audit"
      aside={
        <div class="row">
          <Tick isOn={isWhole} onChange={setWhole}>
            {t.earlier}
          </Tick>
          <Tick isOn={onlyProblems} onChange={setOnlyProblems}>
            {t.onlyProblems}
          </Tick>
          <span class={`pulse ${state}`} role="status">
            {states[state]}
          </span>
        </div>
      }
    >
      {onlyProblems || isWhole ? (
        <StoredEvents
          filters={onlyProblems ? problems : ''}
          none={onlyProblems ? t.noProblems : t.noEvents}
        />
      ) : events.length === 0 ? (
        <p class="dim pad">{state === 'live' ? t.noEvents : t.connecting}</p>
      ) : (
        <EventRows events={events.slice(0, drawnItems)} />
      )}
    </Card>
  )
}

function Danger({ details: { metadata, status } }: { details: ClusterDetails }) {
  const t = text.value.cluster
  const name = metadata.name ?? ''
  return (
    <DangerZone title={t.danger}>
      <DangerAction
        title={t.delete}
        lost={t.deleteLong(plain(name))}
        name={name}
        isOff={status.clusterState === 'Deleting'}
        // Its ETag goes with the deletion: a change that came meanwhile is not deleted unseen.
        onAsk={() => get(clusterPath)}
        onConfirm={() => change('DELETE', clusterPath, undefined, ifMatch(clusterPath))}
      />
    </DangerZone>
  )
}
