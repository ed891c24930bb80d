import { useState } from 'preact/hooks'
import type { PackSummary, PackTagEntity } from '../../../platform/packs/schemas.ts'
import { bytes, day, plain } from '../../shared/format.ts'
import { DangerAction, DangerZone } from '../../shared/dialog.tsx'
import { Card, Choice, Command, Empty, Facts, PagedList, PageHeader, Shown } from '../../shared/parts.tsx'
import { usePages, useReading } from '../../shared/read.ts'
import { change, ifMatch } from '../../shared/request.ts'
import { hrefOf, placeProject } from '../../shared/shell.tsx'
import { Table } from '../../shared/table.tsx'
import { allOf } from '../filter.ts'
import { packsPath as path } from '../imports.ts'
import { remoteScoped, scoped, shellWord, text } from '../platform.ts'
import { roleIn } from '../session.ts'
import { ImportCard } from './import-card.tsx'

/** The packs of the scope, or those of the tenant that its projects may use. */
export function PackList() {
  const t = text.value.packs
  const [isOfTenant, setOfTenant] = useState(false)
  const packs = usePages<PackSummary>(
    scoped(path, {
      orderBy: 'metadata.name=1,metadata.creationTimestamp=-1',
      ...(isOfTenant ? { ofTenant: 'true' } : {}),
    }),
    15_000,
  )
  return (
    <>
      <PageHeader title={t.title} />
      <Card
        title={t.title}
        icon="packs"
        aside={
          placeProject.value !== undefined && (
            <div class="filters">
              <Choice
                label={t.where}
                value={isOfTenant ? 'tenant' : 'project'}
                options={[
                  ['project', text.value.profiles.ofProject],
                  ['tenant', text.value.profiles.ofTenant],
                ]}
                onChange={(value) => setOfTenant(value === 'tenant')}
              />
            </div>
          )
        }
      >
        <PagedList
          list={packs}
          lines={5}
          none={
            <Empty icon="packs" title={t.none}>
              {t.noneLong}
            </Empty>
          }
        >
          {(items) => <Rows packs={items} isOfTenant={isOfTenant} />}
        </PagedList>
      </Card>
      <ImportCard kind="pack" onDone={packs.again} />
      <Command command={remoteScoped('pack list')} />
    </>
  )
}

function Rows({ packs, isOfTenant }: { packs: readonly PackSummary[]; isOfTenant: boolean }) {
  const t = text.value.packs
  // A pack of the tenant has its page there, for who has a role there.
  const project = isOfTenant ? '' : placeProject.value
  const isLinked = !isOfTenant || roleIn(undefined) !== undefined
  return (
    <Table
      title={t.title}
      file="packs"
      items={packs}
      keyOf={({ metadata }) => metadata.uid}
      columns={[
        {
          title: t.pack,
          cell: ({ metadata, spec }) => (
            <>
              {isLinked ? (
                <a href={hrefOf(`/packs/${metadata.uid}`, project)}>{plain(spec.name)}</a>
              ) : (
                plain(spec.name)
              )}
              {spec.displayName !== spec.name && <span class="dim"> {plain(spec.displayName)}</span>}
            </>
          ),
        },
        { title: t.version, cell: ({ spec }) => plain(spec.version) },
        {
          title: t.layer,
          cell: ({ spec }) => plain([spec.layer, spec.addonType].filter(Boolean).join(', ')),
        },
        { title: t.size, isNumber: true, cell: ({ spec }) => bytes(spec.sizeBytes) },
        { title: t.uploaded, cell: ({ metadata }) => day(metadata.creationTimestamp) },
      ]}
    />
  )
}

/** One pack: what it is, its other versions, and its values. */
export function Pack({ uid }: { uid: string }) {
  const t = text.value.packs
  // A pack never changes.
  const pack = useReading<PackTagEntity>(scoped(`${path}/${encodeURIComponent(uid)}`), 60_000)
  const name = pack.body?.name
  const versions = useReading<{ items: readonly PackSummary[] }>(
    name === undefined
      ? undefined
      : scoped(path, { filters: allOf([['spec.name', name]]), orderBy: 'metadata.creationTimestamp=-1' }),
    15_000,
  )
  const all = versions.body?.items ?? []
  const version = pack.body?.tags[0]?.version ?? ''
  return (
    <>
      <PageHeader title={name === undefined ? t.pack : plain(`${name} ${version}`)} />
      <Shown reading={pack} lines={6}>
        {(read) => (
          <>
            <div class="grid">
              <Card title={t.pack} icon="packs" width="half">
                <PackFacts pack={read} summary={all.find(({ metadata }) => metadata.uid === uid)} />
              </Card>
              <Card title={t.versions} icon="packs" width="half">
                <Versions others={all.filter(({ metadata }) => metadata.uid !== uid)} />
              </Card>
            </div>
            <Texts pack={read} />
            <Command command={remoteScoped(`pack show ${shellWord(`${read.name}@${version}`)}`)} />
            <DangerZone title={text.value.cluster.danger}>
              <DangerAction
                title={t.delete}
                lost={t.deleteLong(plain(`${read.name} ${version}`))}
                name={read.name}
                onConfirm={async () => {
                  const own = scoped(`${path}/${uid}`)
                  await change('DELETE', own, undefined, ifMatch(own))
                  location.hash = hrefOf('/packs')
                }}
              />
            </DangerZone>
          </>
        )}
      </Shown>
    </>
  )
}

function PackFacts({ pack, summary }: { pack: PackTagEntity; summary: PackSummary | undefined }) {
  const t = text.value.packs
  const [values] = pack.packValues
  const { sizeBytes, digest, manifests = [] } = summary?.spec ?? {}
  const list = (words: readonly string[]) => plain(words.join(', '))
  return (
    <Facts
      facts={[
        [t.displayName, plain(pack.displayName)],
        [t.layer, list([pack.layer, pack.addonType, pack.addonSubType].filter(Boolean))],
        [t.clouds, list(pack.cloudTypes)],
        [t.registry, pack.registryUid === '' ? t.given : plain(pack.registryUid)],
        [t.needs, list((values?.dependencies ?? []).map((each) => `${each.name} ${each.version}`.trim()))],
        [t.presets, list((values?.presets ?? []).map(({ displayName }) => displayName))],
        [t.manifests, list(manifests.map((each) => each.name))],
        [t.size, sizeBytes === undefined ? '' : bytes(sizeBytes)],
        [t.uploaded, summary === undefined ? '' : day(summary.metadata.creationTimestamp)],
        [t.digest, digest !== undefined && <code>{plain(digest)}</code>],
      ]}
    />
  )
}

const Versions = ({ others }: { others: readonly PackSummary[] }) => (
  <ul class="links">
    {others.length === 0 && <li class="dim">–</li>}
    {others.map(({ metadata, spec }) => (
      <li key={metadata.uid}>
        <a href={hrefOf(`/packs/${metadata.uid}`)}>{plain(spec.version)}</a>
      </li>
    ))}
  </ul>
)

function Texts({ pack: { packValues } }: { pack: PackTagEntity }) {
  const t = text.value.packs
  const { values = '', readme = '' } = packValues[0] ?? {}
  const texts = ([[t.values, values] as const, [t.readme, readme] as const] as const).filter(
    ([, content]) => content !== '',
  )
  if (texts.length === 0) return null
  return (
    <Card title={t.texts} icon="content">
      <div class="pad form">
        {texts.map(([title, content]) => (
          <details key={title}>
            <summary>{title}</summary>
            <pre class="lines" tabIndex={0} aria-label={title}>
              {plain(content)}
            </pre>
          </details>
        ))}
      </div>
    </Card>
  )
}
