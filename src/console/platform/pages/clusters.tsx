import { useState } from 'preact/hooks'
import type { SpectroCluster } from '../../../platform/clusters/schemas.ts'
import { plain, time } from '../../shared/format.ts'
import {
  AdminButton,
  Badge,
  Card,
  Choice,
  Command,
  Empty,
  PagedList,
  PageHeader,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { usePages } from '../../shared/read.ts'
import { lastContact } from '../../shared/request.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { allOf } from '../filter.ts'
import { remoteScoped, scoped, text } from '../platform.ts'
import { ageOf } from './hosts.tsx'

type State = SpectroCluster['status']['state']
const states: readonly State[] = ['Error', 'Pending', 'Provisioning', 'Running', 'Deleting', 'Deleted']

/** Whether the host of a cluster is silent, so that all that is shown of it is old. */
export const silenceOf = ({ status }: SpectroCluster) =>
  status.conditions.find(({ type, status: is }) => type === 'HostSilent' && is === 'True')

const moods: Readonly<Record<State, Mood>> = {
  Pending: 'info',
  Provisioning: 'info',
  Running: 'good',
  Deleting: 'info',
  Error: 'bad',
  Deleted: 'warning',
}

/** The state of a cluster in a word, and whether it is old. */
export function ClusterBadge({ cluster }: { cluster: SpectroCluster }) {
  const t = text.value.clusters
  const { state } = cluster.status
  return (
    <>
      <Badge mood={moods[state]}>{t.states[state]}</Badge>{' '}
      {silenceOf(cluster) && <Badge mood="warning">{t.hostSilent}</Badge>}
    </>
  )
}

/** The clusters of the scope; those that run and need no one come last. */
export function ClusterList() {
  const t = text.value.clusters
  const [state, setState] = useState<'' | State>('')
  const clusters = usePages<SpectroCluster>(
    scoped('/v1/spectroclusters', {
      filters: allOf(state === '' ? [] : [['status.state', state]]),
      // `Running` is the last of the states by their letters.
      orderBy: 'status.state=1,metadata.name=1',
    }),
    10_000,
  )
  return (
    <>
      <PageHeader
        title={t.title}
        aside={
          <AdminButton
            kind="primary"
            needs="operator"
            onClick={() => {
              location.hash = hrefOf('/clusters/new')
            }}
          >
            {t.new}
          </AdminButton>
        }
      >
        {clusters.body && text.value.hosts.readAt(time(lastContact.value))}
      </PageHeader>
      <Card
        title={t.title}
        icon="cluster"
        aside={
          <div class="filters">
            <Choice
              label={t.state}
              value={state}
              options={[['', t.anyState], ...states.map((each) => [each, t.states[each]] as const)]}
              onChange={setState}
            />
          </div>
        }
      >
        <PagedList
          list={clusters}
          lines={5}
          none={
            state === '' ? (
              <Empty icon="cluster" title={t.none}>
                {t.noneLong}
              </Empty>
            ) : (
              <p class="dim pad">{t.noneFound}</p>
            )
          }
        >
          {(items) => <Rows clusters={items} />}
        </PagedList>
      </Card>
      <Command
        command={remoteScoped(state === '' ? 'cluster list' : `cluster list --filter status.state=${state}`)}
      />
    </>
  )
}

function Rows({ clusters }: { clusters: readonly SpectroCluster[] }) {
  const t = text.value.clusters
  return (
    <Table
      title={t.title}
      file="clusters"
      items={clusters}
      keyOf={({ metadata }) => metadata.uid}
      columns={[
        {
          title: t.cluster,
          cell: ({ metadata }) => <a href={hrefOf(`/clusters/${metadata.uid}`)}>{plain(metadata.name)}</a>,
        },
        { title: t.state, cell: (cluster) => <ClusterBadge cluster={cluster} /> },
        {
          title: t.host,
          cell: ({ spec: { edgeHost } }) => (
            <a href={hrefOf(`/hosts/${edgeHost.uid}`)}>{plain(edgeHost.name)}</a>
          ),
        },
        {
          title: t.profiles,
          cell: ({ spec }) =>
            plain(
              spec.clusterProfileTemplates
                .map(({ name, profileVersion }) => `${name} ${profileVersion}`)
                .join(', '),
            ),
        },
        {
          title: t.reported,
          cell: ({ status: { lastHeartbeatTimestamp } }) =>
            lastHeartbeatTimestamp === undefined ? (
              <span class="dim">{text.value.hosts.never}</span>
            ) : (
              text.value.hosts.ago(ageOf(lastHeartbeatTimestamp))
            ),
        },
      ]}
    />
  )
}
