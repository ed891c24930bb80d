import { useState } from 'preact/hooks'
import type { PackStatus, SpectroCluster } from '../../../platform/clusters/schemas.ts'
import type { ClusterProfile } from '../../../platform/profiles/schemas.ts'
import { day, plain, wordsOf } from '../../shared/format.ts'
import { Confirm, DangerAction, DangerZone } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  ChangeForm,
  Choice,
  Command,
  Note,
  PageHeader,
  Shown,
  Tick,
  useAction,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { sharedText } from '../../shared/texts.ts'
import { useReading } from '../../shared/read.ts'
import { change, ifMatch } from '../../shared/request.ts'
import { hasRole } from '../../shared/session.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { ClusterBadge, silenceOf } from './clusters.tsx'
import { Events } from './events.tsx'
import { ageOf } from './hosts.tsx'
import { useProfiles } from './usable-profiles.ts'

/** One cluster: what it shall be, and what its host has reported. */
export function Cluster({ uid }: { uid: string }) {
  const path = `/v1/spectroclusters/${encodeURIComponent(uid)}`
  const cluster = useReading<SpectroCluster>(scoped(path), 10_000)
  const { body } = cluster
  const command = body && shellWord(body.metadata.name)
  return (
    <>
      <PageHeader
        title={body ? plain(body.metadata.name) : text.value.clusters.cluster}
        aside={body && <ClusterBadge cluster={body} />}
      >
        {body && <Origin cluster={body} />}
      </PageHeader>
      <Shown reading={cluster} lines={8}>
        {(read) => (
          <>
            <Troubles cluster={read} />
            {(read.status.steps ?? []).length > 0 && <Steps cluster={read} />}
            <Packs packs={read.status.packs ?? []} />
            <Profiles cluster={read} path={path} onChange={cluster.again} />
            <Conditions cluster={read} />
            <Events
              title={text.value.host.events}
              where={[
                ['source.hostUid', read.spec.edgeHost.uid],
                ['involvedObject.uid', read.metadata.uid],
              ]}
            />
            <Command command={remoteScoped(`cluster watch ${command ?? 'CLUSTER'}`)} />
            <Danger cluster={read} path={path} onChange={cluster.again} />
          </>
        )}
      </Shown>
    </>
  )
}

function Origin({ cluster: { spec, status } }: { cluster: SpectroCluster }) {
  const { edgeHost } = spec
  const { revision, lastHeartbeatTimestamp: at } = status
  return (
    <>
      <a href={hrefOf(`/hosts/${edgeHost.uid}`)}>{plain(edgeHost.name)}</a>
      {revision !== undefined && ` · ${text.value.cluster.revision(revision)}`}
      {at !== undefined && ` · ${text.value.host.reported(ageOf(at))}`}
    </>
  )
}

/** What needs someone: a silent host, a change that is not applied, a step that failed. */
function Troubles({ cluster }: { cluster: SpectroCluster }) {
  const t = text.value.cluster
  const { spec, status } = cluster
  const silence = silenceOf(cluster)
  const wanted = status.conditions.find(({ type }) => type === 'Wanted')
  const failed = (status.steps ?? []).find(({ state }) => state === 'failed')
  return (
    <>
      {silence && (
        <Note mood="warning">
          <strong>{text.value.clusters.hostSilent}</strong>
          <p>{plain(silence.message ?? '')}</p>
        </Note>
      )}
      {status.isDeletionRequested && (
        <Note mood="info">
          <p>{t.deletion}</p>
        </Note>
      )}
      {wanted && wanted.status !== 'True' && (
        <Note mood="bad">
          <strong>
            {t.outcome}: {plain(wordsOf(wanted.reason ?? ''))}
          </strong>
          <p>{plain(wanted.message ?? '')}</p>
        </Note>
      )}
      {status.number !== undefined && status.number < spec.number && (
        <Note mood="info">
          <p>{t.number(spec.number, status.number)}</p>
        </Note>
      )}
      {status.number === undefined && (
        <Note mood="info">
          <p>{t.unaccepted}</p>
        </Note>
      )}
      {failed && (
        <Note mood="bad">
          <strong>{plain(failed.title)}</strong>
          <p>{plain(failed.reason ?? '')}</p>
          <p class="dim">{t.failures(failed.failures)}</p>
        </Note>
      )}
    </>
  )
}

const stepMoods = { running: 'info', done: 'good', failed: 'bad' } as const

function Steps({ cluster: { status } }: { cluster: SpectroCluster }) {
  const t = text.value.cluster
  return (
    <Card title={t.steps} icon="system">
      <Table
        title={t.steps}
        items={status.steps ?? []}
        keyOf={({ key }) => key}
        columns={[
          { title: t.step, cell: ({ title }) => plain(title) },
          {
            title: t.status,
            cell: ({ state }) => <Badge mood={stepMoods[state]}>{t.stepStates[state]}</Badge>,
          },
          {
            title: t.since,
            cell: ({ startTimestamp }) => (startTimestamp === undefined ? '–' : day(startTimestamp)),
          },
        ]}
      />
    </Card>
  )
}

function moodOfPack({ condition }: PackStatus): Mood {
  const state = condition?.type ?? ''
  if (/Fail|Error|Unavailable/.test(state)) return 'bad'
  return condition?.status === 'True' ? 'good' : 'info'
}

/** A status that this page knows no word for is shown as it was reported. */
function statusOf({ condition }: PackStatus): string {
  const type = condition?.type ?? '–'
  return sharedText.value.packStatuses[type] ?? plain(wordsOf(type))
}

/** What the host has reported of the packs. */
export function Packs({ packs }: { packs: readonly PackStatus[] }) {
  const t = text.value.cluster
  return (
    <Card title={t.packs} icon="content">
      {packs.length === 0 ? (
        <p class="dim">{t.noPacks}</p>
      ) : (
        <Table
          title={t.packs}
          items={packs}
          keyOf={({ name = '', profileUid = '' }) => `${profileUid} ${name}`}
          columns={[
            { title: t.pack, cell: ({ name = '' }) => plain(name) },
            { title: t.version, cell: ({ version = '–' }) => plain(version) },
            {
              title: t.status,
              cell: (pack) => (
                <>
                  <Badge mood={moodOfPack(pack)}>{statusOf(pack)}</Badge>{' '}
                  <span class="dim">{plain(pack.condition?.message ?? '')}</span>
                </>
              ),
            },
          ]}
        />
      )}
    </Card>
  )
}

function Conditions({ cluster: { status } }: { cluster: SpectroCluster }) {
  const t = text.value.cluster
  return (
    <Card title={t.conditions} icon="audit">
      <Table
        title={t.conditions}
        items={status.conditions}
        keyOf={({ type }) => type}
        columns={[
          {
            title: t.condition,
            cell: ({ type, reason }) => (
              <>
                {plain(wordsOf(type))} <span class="dim">{plain(wordsOf(reason ?? ''))}</span>
              </>
            ),
          },
          { title: t.status, cell: ({ status: is }) => plain(is) },
          { title: t.message, cell: ({ message = '' }) => (message === '' ? '–' : plain(message)) },
          {
            title: t.since,
            cell: ({ lastTransitionTime: at }) => (at === undefined ? '–' : day(at)),
          },
        ]}
      />
    </Card>
  )
}

interface PartProps {
  readonly cluster: SpectroCluster
  /** Of the cluster in the API, without its project. */
  readonly path: string
  readonly onChange: () => void
}

/** The profiles of the cluster, and the form that replaces them. */
function Profiles({ cluster, path, onChange }: PartProps) {
  const t = text.value.cluster
  const [isChanging, setChanging] = useState(false)
  return (
    <Card
      title={t.profiles}
      icon="content"
      aside={
        !isChanging && (
          <AdminButton kind="plain small" needs="operator" onClick={() => setChanging(true)}>
            {t.change}
          </AdminButton>
        )
      }
    >
      {isChanging && hasRole('operator') ? (
        <ProfilesForm
          cluster={cluster}
          path={path}
          onChange={() => {
            setChanging(false)
            onChange()
          }}
        />
      ) : (
        <ul class="links">
          {cluster.spec.clusterProfileTemplates.map(({ uid, name, profileVersion }) => (
            <li key={uid}>{plain(`${name} ${profileVersion}`)}</li>
          ))}
        </ul>
      )}
    </Card>
  )
}

const nameOf = ({ metadata, spec }: ClusterProfile) => `${metadata.name} ${spec.version}`

function ProfilesForm({ cluster, path, onChange }: PartProps) {
  const t = text.value.cluster
  const known = useProfiles().body?.items ?? []
  const [chosen, setChosen] = useState(cluster.spec.clusterProfileTemplates.map(({ uid }) => uid))
  const own = scoped(path)
  const [tag] = useState(() => ifMatch(own))
  const action = useAction(
    () => change('PUT', scoped(`${path}/profiles`), { profiles: chosen.map((uid) => ({ uid })) }, tag),
    onChange,
  )
  const titles = new Map([
    ...cluster.spec.clusterProfileTemplates.map(
      ({ uid, name, profileVersion }) => [uid, `${name} ${profileVersion}`] as const,
    ),
    ...known.map((profile) => [profile.metadata.uid, nameOf(profile)] as const),
  ])
  const names = chosen.map((uid) => shellWord((titles.get(uid) ?? uid).replace(/ (?=[^ ]*$)/, '@')))
  const left = known.filter(({ metadata }) => !chosen.includes(metadata.uid))
  return (
    <ChangeForm action={action} submit={t.change} isOff={chosen.length === 0}>
      <p class="dim">{t.changeLong}</p>
      {chosen.map((uid) => (
        <div key={uid} class="row">
          <strong>{plain(titles.get(uid) ?? uid)}</strong>
          <button
            type="button"
            class="plain small"
            onClick={() => setChosen(chosen.filter((each) => each !== uid))}
          >
            {t.remove}
          </button>
        </div>
      ))}
      <Choice
        label={t.add}
        value=""
        options={[
          ['', text.value.create.choose],
          ...left.map((profile) => [profile.metadata.uid, nameOf(profile)] as const),
        ]}
        onChange={(uid) => setChosen([...chosen, uid])}
      />
      <Command
        command={remoteScoped(
          `cluster profiles ${shellWord(cluster.metadata.name)} ${names.map((name) => `--profile ${name}`).join(' ')}`,
        )}
      />
    </ChangeForm>
  )
}

function Danger({ cluster, path, onChange }: PartProps) {
  const t = text.value.cluster
  const [isAsking, setAsking] = useState(false)
  // Of when it was asked: a change that comes meanwhile is not taken back or deleted unseen.
  const [match, setMatch] = useState<ReturnType<typeof ifMatch>>()
  const [isForgotten, setForgotten] = useState(false)
  const { metadata, spec } = cluster
  const own = scoped(path)
  async function remove() {
    await change('DELETE', scoped(path, isForgotten ? { forceDelete: 'true' } : {}), undefined, match)
    if (isForgotten) location.hash = hrefOf('/clusters')
  }
  return (
    <DangerZone title={t.danger}>
      <div class="row">
        <p class="dim">{t.applyLong}</p>
        <AdminButton
          needs="operator"
          onClick={() => {
            setMatch(ifMatch(own))
            setAsking(true)
          }}
        >
          {t.apply}…
        </AdminButton>
      </div>
      <DangerAction
        title={t.delete}
        lost={t.deleteLong(plain(metadata.name), plain(spec.edgeHost.name))}
        name={metadata.name}
        onAsk={() => setMatch(ifMatch(own))}
        onConfirm={remove}
        onClose={onChange}
      >
        {silenceOf(cluster) && (
          <Tick isOn={isForgotten} onChange={setForgotten}>
            {t.forget}
          </Tick>
        )}
      </DangerAction>
      {isAsking && (
        <Confirm
          title={t.apply}
          action={t.apply}
          onConfirm={() => change('POST', scoped(`${path}/apply`), undefined, match)}
          onClose={() => {
            setAsking(false)
            onChange()
          }}
        >
          <p>{t.applyLong}</p>
        </Confirm>
      )}
    </DangerZone>
  )
}
