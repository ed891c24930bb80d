import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { ClusterProfile, Variables } from '../../../platform/profiles/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { DangerAction, DangerZone } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  Choice,
  Command,
  Empty,
  PagedList,
  PageHeader,
  Problem,
  saveFile,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { usePages, useReading } from '../../shared/read.ts'
import { change, ifMatch, open } from '../../shared/request.ts'
import { hrefOf, placeProject } from '../../shared/shell.tsx'
import { profilesPath as path } from '../imports.ts'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { ImportCard } from './import-card.tsx'

/** The present content of a profile. */
export const templateOf = ({ spec }: ClusterProfile) => spec.published ?? spec.draft

/** The profiles of the scope, or those of the tenant that its projects may use. */
export function ProfileList() {
  const t = text.value.profiles
  const [isOfTenant, setOfTenant] = useState(false)
  const profiles = usePages<ClusterProfile>(
    scoped(path, { orderBy: 'metadata.name=1', ...(isOfTenant ? { ofTenant: 'true' } : {}) }),
    15_000,
  )
  return (
    <>
      <PageHeader title={t.title} />
      <Card
        title={t.title}
        icon="content"
        aside={
          placeProject.value !== undefined && (
            <div class="filters">
              <Choice
                label={t.where}
                value={isOfTenant ? 'tenant' : 'project'}
                options={[
                  ['project', t.ofProject],
                  ['tenant', t.ofTenant],
                ]}
                onChange={(value) => setOfTenant(value === 'tenant')}
              />
            </div>
          )
        }
      >
        <PagedList
          list={profiles}
          lines={5}
          none={
            <Empty icon="content" title={t.none}>
              {t.noneLong}
            </Empty>
          }
        >
          {(items) => <Rows profiles={items} isOfTenant={isOfTenant} />}
        </PagedList>
      </Card>
      <ImportCard kind="profile" onDone={profiles.again} />
      <Command command={remoteScoped('profile list')} />
    </>
  )
}

function Rows({ profiles, isOfTenant }: { profiles: readonly ClusterProfile[]; isOfTenant: boolean }) {
  const t = text.value.profiles
  return (
    <Table
      title={t.title}
      file="profiles"
      items={profiles}
      keyOf={({ metadata }) => metadata.uid}
      columns={[
        {
          title: t.profile,
          cell: ({ metadata }) => (
            <a href={hrefOf(`/profiles/${metadata.uid}${isOfTenant ? '/tenant' : ''}`)}>
              {plain(metadata.name)}
            </a>
          ),
        },
        { title: t.version, cell: ({ spec }) => plain(spec.version) },
        { title: t.state, cell: (profile) => <State profile={profile} /> },
        { title: t.type, cell: (profile) => plain(templateOf(profile)?.type ?? '–') },
        {
          title: t.packs,
          cell: (profile) =>
            (templateOf(profile)?.packs ?? []).map(({ name, tag }) => (
              <span key={name} class="tag">
                {plain(`${name} ${tag}`)}
              </span>
            )),
        },
        { title: t.used, cell: ({ status }) => t.clusters(status.inUseClusterUids.length) },
      ]}
    />
  )
}

function State({ profile: { status } }: { profile: ClusterProfile }) {
  const t = text.value.profiles
  return (
    <Badge mood={status.isPublished ? 'good' : 'info'}>{status.isPublished ? t.published : t.draft}</Badge>
  )
}

/** One profile: its packs, its variables, its other versions, and who uses it. */
export function Profile({ uid, isOfTenant }: { uid: string; isOfTenant: boolean }) {
  const t = text.value.profiles
  const parameters = isOfTenant ? { ofTenant: 'true' } : undefined
  const own = `${path}/${encodeURIComponent(uid)}`
  const profile = useReading<ClusterProfile>(scoped(own, parameters), 15_000)
  const variables = useReading<Static<typeof Variables>>(scoped(`${own}/variables`, parameters), 60_000)
  const { body } = profile
  return (
    <>
      <PageHeader
        title={body ? plain(`${body.metadata.name} ${body.spec.version}`) : t.profile}
        aside={body && <State profile={body} />}
      >
        {body && `${t.imported} ${day(body.metadata.creationTimestamp)}`}
      </PageHeader>
      <Shown reading={profile} lines={6}>
        {(read) => (
          <>
            <Card title={t.packs} icon="content">
              <Packs profile={read} />
            </Card>
            <Card title={t.variables} icon="key">
              <Shown reading={variables}>{(all) => <VariableTable variables={all.variables} />}</Shown>
            </Card>
            <Uses profile={read} isOfTenant={isOfTenant} />
            <Command
              command={remoteScoped(
                `profile show ${shellWord(`${read.metadata.name}@${read.spec.version}`)}`,
              )}
            />
            {!isOfTenant && <Export profile={read} />}
            {!isOfTenant && <Danger profile={read} />}
          </>
        )}
      </Shown>
    </>
  )
}

function Packs({ profile }: { profile: ClusterProfile }) {
  const t = text.value.profiles
  return (
    <Table
      title={t.packs}
      items={templateOf(profile)?.packs ?? []}
      keyOf={({ name }) => name}
      columns={[
        { title: t.pack, cell: ({ name }) => plain(name) },
        {
          title: t.version,
          cell: ({ tag, packUid }) => (
            <>
              {plain(tag)} {packUid === '' && <Badge mood="warning">{t.missing}</Badge>}
            </>
          ),
        },
        { title: t.layer, cell: ({ layer }) => plain(layer) },
        { title: t.type, cell: ({ type }) => plain(type) },
      ]}
    />
  )
}

function VariableTable({ variables }: Static<typeof Variables>) {
  const t = text.value.profiles
  if (variables.length === 0) return <p class="dim pad">{t.noVariables}</p>
  return (
    <Table
      title={t.variables}
      items={variables}
      keyOf={({ name }) => name}
      columns={[
        {
          title: t.variable,
          cell: ({ name, required, isSensitive, description = '' }) => (
            <>
              {plain(name)}
              {required === true && <span class="tag">{t.required}</span>}
              {isSensitive === true && <span class="tag">{t.sensitive}</span>}
              <br />
              <span class="dim">{plain(description)}</span>
            </>
          ),
        },
        { title: t.default, cell: ({ defaultValue = '' }) => <code>{plain(defaultValue)}</code> },
      ]}
    />
  )
}

function Uses({
  profile: { spec, status, metadata },
  isOfTenant,
}: {
  profile: ClusterProfile
  isOfTenant: boolean
}) {
  const t = text.value.profiles
  const others = (spec.versions ?? []).filter(({ uid }) => uid !== metadata.uid)
  return (
    <div class="grid">
      <Card title={t.used} icon="cluster" width="half">
        <ul class="links">
          {status.inUseClusters.length === 0 && <li class="dim">–</li>}
          {status.inUseClusters.map(({ uid, name, projectUid }) => (
            <li key={uid}>
              <a href={hrefOf(`/clusters/${uid}`, projectUid)}>{plain(name)}</a>
            </li>
          ))}
        </ul>
      </Card>
      <Card title={t.versions} icon="content" width="half">
        <ul class="links">
          {others.length === 0 && <li class="dim">–</li>}
          {others.map(({ uid, version }) => (
            <li key={uid}>
              <a href={hrefOf(`/profiles/${uid}${isOfTenant ? '/tenant' : ''}`)}>{plain(version)}</a>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  )
}

/** The profile as a file, which goes through the memory of the page: it has at most 16 MiB. */
function Export({ profile: { metadata, spec } }: { profile: ClusterProfile }) {
  const t = text.value.profiles
  const [format, setFormat] = useState<'json' | 'yaml'>('json')
  const { run, isBusy, error } = useAction(async () => {
    const own = scoped(`${path}/${metadata.uid}/export`, { format })
    const reply = await open(own, { timeoutMs: 120_000 })
    saveFile(`${metadata.name}-${spec.version}.${format}`, await reply.blob())
  })
  const word = shellWord(`${metadata.name}@${spec.version}`)
  return (
    <>
      <Card title={t.export} icon="content">
        <div class="pad form">
          <p class="dim">{t.exportLong}</p>
          <Choice
            label={t.format}
            value={format}
            options={[
              ['json', 'JSON'],
              ['yaml', 'YAML'],
            ]}
            onChange={setFormat}
          />
          {error && <Problem error={error} />}
          <div class="buttons">
            <AdminButton needs="operator" isOff={isBusy} onClick={() => void run()}>
              {t.export}
            </AdminButton>
          </div>
        </div>
      </Card>
      <Command
        title={t.export}
        command={remoteScoped(`profile export ${word}${format === 'yaml' ? ' --output yaml' : ''}`)}
      />
    </>
  )
}

function Danger({ profile: { metadata, spec } }: { profile: ClusterProfile }) {
  const t = text.value.profiles
  const own = scoped(`${path}/${metadata.uid}`)
  async function remove() {
    await change('DELETE', own, undefined, ifMatch(own))
    location.hash = hrefOf('/profiles')
  }
  return (
    <DangerZone title={text.value.cluster.danger}>
      <DangerAction
        title={t.delete}
        lost={t.deleteLong(plain(`${metadata.name} ${spec.version}`))}
        name={metadata.name}
        onConfirm={remove}
      />
    </DangerZone>
  )
}
