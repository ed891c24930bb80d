import { useState } from 'preact/hooks'
import type { EdgeHostDevice } from '../../../platform/hosts/schemas.ts'
import { bytes, day, plain } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import { Disks, Nics } from '../../shared/machine.tsx'
import { DangerAction, DangerZone } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Card,
  ChangeForm,
  Command,
  Entry,
  Facts,
  Note,
  PageHeader,
  Problem,
  Shown,
  Tick,
  useAction,
} from '../../shared/parts.tsx'
import { useReading } from '../../shared/read.ts'
import { change, ifMatch } from '../../shared/request.ts'
import { hasRole } from '../../shared/session.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { sharedText } from '../../shared/texts.ts'
import { labelsOf } from '../filter.ts'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { Events } from './events.tsx'
import { ageOf, HostBadge, Labels } from './hosts.tsx'

const mib = 1024 ** 2

/** One host: what it has reported, with the age of that. */
export function Host({ uid }: { uid: string }) {
  const path = scoped(`/v1/edgehosts/${encodeURIComponent(uid)}`)
  const host = useReading<EdgeHostDevice>(path, 10_000)
  const t = text.value.host
  const { body } = host
  const health = body?.status.health
  const name = body?.metadata.name ?? text.value.hosts.host
  return (
    <>
      <PageHeader title={plain(name)} aside={body && <HostBadge host={body} />}>
        {body &&
          [
            plain(body.spec.host.hostAddress),
            health ? t.reported(ageOf(health.lastHeartbeatTimestamp)) : t.notReported,
          ]
            .filter((each) => each !== '')
            .join(' · ')}
      </PageHeader>
      <Shown reading={host} lines={8}>
        {(read) => (
          <>
            <Standing host={read} path={path} onChange={host.again} />
            <div class="grid">
              <Card title={t.facts} icon="host" width="half">
                <Reported host={read} />
              </Card>
              <div class="half stack">
                <Card title={t.cluster} icon="cluster">
                  <ClusterOf host={read} />
                </Card>
                <Card title={t.labels} icon="key">
                  <LabelForm host={read} path={path} onChange={host.again} />
                </Card>
                <Hardware host={read} />
              </div>
            </div>
            <Events title={t.events} where={[['source.hostUid', uid]]} />
            <Command command={remoteScoped(`host show ${shellWord(read.metadata.name)}`)} />
            <Danger host={read} path={path} />
          </>
        )}
      </Shown>
    </>
  )
}

interface PartProps {
  readonly host: EdgeHostDevice
  /** Of the host in the API. */
  readonly path: string
  readonly onChange: () => void
}

/** What needs someone, before anything else. */
function Standing({ host: { metadata, status }, path, onChange }: PartProps) {
  const t = text.value.host
  const accept = useAction(
    () => change('PUT', path.replace(metadata.uid, `${metadata.uid}/duplicate`), { action: 'acceptNext' }),
    onChange,
  )
  const { health, isDuplicate } = status
  if (isDuplicate === true)
    return (
      <section class="hero bad">
        <Icon name="bad" />
        <div>
          <h2>{t.twice}</h2>
          <p>{t.twiceLong}</p>
          <AdminButton isOff={accept.isBusy} onClick={() => void accept.run()}>
            {t.accept}
          </AdminButton>
          {accept.error && <Problem error={accept.error} title={sharedText.value.notDone} />}
        </div>
      </section>
    )
  const mood = health ? (health.state === 'healthy' ? 'good' : 'bad') : 'info'
  if (!health)
    return (
      <Note mood="info">
        <p>{t.silentLong}</p>
      </Note>
    )
  return (
    <section class={`hero ${mood}`}>
      <Icon name={mood} />
      <div>
        <h2>{mood === 'good' ? t.good : t.bad}</h2>
        {health.message !== '' && <p>{plain(health.message)}</p>}
      </div>
    </section>
  )
}

function Reported({ host: { metadata, spec, status } }: { host: EdgeHostDevice }) {
  const t = text.value.host
  const { device, host, service } = spec
  const { os = {}, cpu, memory, archType, secureBoot } = device
  const words = (...parts: readonly (string | undefined)[]) =>
    plain(parts.filter((each) => each !== undefined && each !== '').join(' '))
  return (
    <Facts
      facts={[
        [t.name, plain(metadata.name)],
        [t.id, <code>{host.hostUid}</code>],
        [t.uid, <code>{metadata.uid}</code>],
        [t.os, words(os.family, os.version)],
        [t.kernel, words(os.kernel, os.kernelVersion)],
        [t.processor, words(archType, cpu?.cores === undefined ? undefined : `· ${t.cores(cpu.cores)}`)],
        [t.memory, memory?.sizeInMB === undefined ? '' : bytes(memory.sizeInMB * mib)],
        secureBoot !== undefined && [t.secureBoot, secureBoot ? t.on : t.off],
        [
          t.version,
          words(status.health?.agentVersion === '' ? service.version : status.health?.agentVersion),
        ],
        [t.registered, day(metadata.creationTimestamp)],
        [t.changed, day(metadata.lastModifiedTimestamp)],
      ]}
    />
  )
}

function ClusterOf({ host: { status } }: { host: EdgeHostDevice }) {
  const t = text.value.host
  const { inUseClusters = [] } = status
  if (inUseClusters.length === 0)
    return (
      <div class="row pad">
        <span class="dim">{t.noCluster}</span>
        <a href={hrefOf('/clusters/new')}>{text.value.clusters.new}</a>
      </div>
    )
  return (
    <>
      {inUseClusters.map(({ name, uid }) => (
        <p key={uid} class="big">
          <a href={hrefOf(`/clusters/${uid}`)}>{plain(name)}</a>
        </p>
      ))}
    </>
  )
}

function Hardware({ host: { spec } }: { host: EdgeHostDevice }) {
  const t = text.value.host
  const { disks = [], nics = [] } = spec.device
  return (
    <>
      <Card title={t.disks} icon="disk">
        {disks.length === 0 ? <p class="dim">{t.noDisks}</p> : <Disks disks={disks} />}
      </Card>
      <Card title={t.network} icon="network">
        {nics.length === 0 ? <p class="dim">{t.noNics}</p> : <Nics nics={nics} />}
      </Card>
    </>
  )
}

const textOf = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels)
    .map((pair) => pair.join('='))
    .join(' ')

/** The labels by which the hosts are filtered. A change of another one since the first key is not overwritten. */
function LabelForm({ host: { metadata }, path, onChange }: PartProps) {
  const t = text.value.host
  const [edit, setEdit] = useState<{ readonly text: string; readonly match: ReturnType<typeof ifMatch> }>()
  const parsed = labelsOf(edit?.text ?? '')
  const labels = Object.fromEntries(
    (parsed ?? []).map(([at, value]) => [at.replace('metadata.labels.', ''), value]),
  )
  const action = useAction(
    () =>
      change(
        'PUT',
        path.replace(metadata.uid, `${metadata.uid}/meta`),
        { metadata: { labels } },
        edit?.match,
      ),
    () => {
      setEdit(undefined)
      onChange()
    },
  )
  if (!hasRole('operator'))
    return (
      <p>
        <Labels labels={metadata.labels} />
      </p>
    )
  return (
    <ChangeForm action={action} submit={edit === undefined ? undefined : t.save} isOff={parsed === undefined}>
      <Entry
        label={t.editLabels}
        value={edit?.text ?? textOf(metadata.labels)}
        onChange={(given) => setEdit({ text: given, match: edit?.match ?? ifMatch(path) })}
      />
      <p role="status" class="bad-text">
        {parsed === undefined && text.value.hosts.badLabels}
      </p>
    </ChangeForm>
  )
}

function Danger({ host: { metadata, status }, path }: Omit<PartProps, 'onChange'>) {
  const t = text.value.host
  const [isForgotten, setForgotten] = useState(false)
  const hasCluster = (status.inUseClusters ?? []).length > 0
  async function remove() {
    const joint = path.includes('?') ? '&' : '?'
    await change('DELETE', isForgotten ? `${path}${joint}forceDelete=true` : path, undefined, ifMatch(path))
    location.hash = hrefOf('/hosts')
  }
  return (
    <DangerZone title={text.value.cluster.danger}>
      <DangerAction
        title={t.delete}
        lost={t.deleteLong(plain(metadata.name))}
        name={metadata.name}
        onConfirm={remove}
      >
        {hasCluster && (
          <Tick isOn={isForgotten} onChange={setForgotten}>
            {t.forget}
          </Tick>
        )}
      </DangerAction>
    </DangerZone>
  )
}
