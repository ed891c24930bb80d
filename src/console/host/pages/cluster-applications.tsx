import { useState } from 'preact/hooks'
import type { ClusterCurrentApplications, PackInfo } from '../../../cluster/packs/schemas.ts'
import type { ClusterDetails, ClusterTrouble, PodLogs } from '../../../cluster/schemas.ts'
import { day, plain, wordsOf } from '../../shared/format.ts'
import {
  AdminButton,
  Badge,
  Card,
  Command,
  Empty,
  Facts,
  PageHeader,
  Problem,
  Shown,
  useAction,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useReading } from '../../shared/read.ts'
import { get } from '../../shared/request.ts'
import { sharedText } from '../../shared/texts.ts'
import { clusterPath, remote, text } from '../host.tsx'

const moodOf = (status: PackInfo['status']): Mood =>
  status === 'Failed' || status === 'Unavailable' ? 'bad' : status === 'Available' ? 'good' : 'info'

/** The profiles of the cluster with their packs, the values that it has, and what a pack brings. */
export function Applications() {
  const t = text.value.cluster
  const applications = useReading<ClusterCurrentApplications>(`${clusterPath}/applications`, 10_000)
  return (
    <>
      <PageHeader title={t.packs} />
      <Shown reading={applications}>
        {({ clusterProfileTemplates }) => (
          <>
            {clusterProfileTemplates.length === 0 && (
              <Empty icon="content" title={t.noPacks}>
                {t.noPacksLong}
              </Empty>
            )}
            {clusterProfileTemplates.map(({ uid, name, version, description, packs, variables }) => (
              <Card
                key={uid}
                title={plain(name)}
                icon="content"
                aside={<span class="dim">{plain(version)}</span>}
              >
                {description !== '' && <p class="dim">{plain(description)}</p>}
                {packs.map((pack) => (
                  <Pack key={`${pack.name} ${pack.displayName ?? ''}`} pack={pack} />
                ))}
                {variables.length > 0 && (
                  <details class="pad">
                    <summary>{t.variables(variables.length)}</summary>
                    <Facts
                      facts={variables.map((variable) => [
                        plain(variable.displayName || variable.name),
                        plain(variable.value) || '–',
                      ])}
                    />
                  </details>
                )}
              </Card>
            ))}
          </>
        )}
      </Shown>
      <Command command={remote('cluster get')} />
    </>
  )
}

function Pack({ pack }: { pack: PackInfo }) {
  const t = text.value.cluster
  const { name, displayName = '', version, layer, status, conditions, contents, values } = pack
  const message = conditions.find((condition) => condition.message !== '')?.message ?? ''
  return (
    <details class="pack">
      <summary>
        <span>
          {pack.icon !== undefined && <img src={pack.icon} width="24" height="24" alt="" />}
          <strong>{plain(displayName || name)}</strong>{' '}
          <span class="dim">{plain([version, layer].join(' · '))}</span>
        </span>
        <Badge mood={moodOf(status)}>{sharedText.value.packStatuses[status]}</Badge>
      </summary>
      {message !== '' && <p>{plain(message)}</p>}
      <Facts
        facts={[
          pack.startTime !== undefined && [t.started, day(pack.startTime)],
          pack.endTime !== undefined && [t.available, day(pack.endTime)],
        ]}
      />
      {contents.length > 0 && (
        <Table
          title={t.contents}
          items={contents}
          keyOf={({ contentType, name: content }) => `${contentType} ${content}`}
          columns={[
            { title: t.contents, cell: ({ name: content }) => plain(content) },
            { title: t.kind, cell: ({ contentType }) => contentType },
            {
              title: t.state,
              cell: ({ syncStatus, syncMsg }) => plain([syncStatus, syncMsg].filter(Boolean).join(': ')),
            },
          ]}
        />
      )}
      {values !== '' && (
        <details>
          <summary>{t.values}</summary>
          <pre class="lines" tabIndex={0} aria-label={t.values}>
            {plain(values)}
          </pre>
        </details>
      )}
    </details>
  )
}

/** Pods that do not run, with the reason; administrators read their last lines here. */
export function Troubles({ details: { status } }: { details: ClusterDetails }) {
  const t = text.value.cluster
  return (
    <Card title={t.troubles} icon="warning">
      <ul class="troubles">
        {status.troubles.map((trouble) => (
          <Trouble
            key={`${trouble.namespace} ${trouble.pod} ${trouble.container ?? ''} ${trouble.reason}`}
            trouble={trouble}
          />
        ))}
      </ul>
    </Card>
  )
}

function Trouble({ trouble: { namespace, pod, container, reason, message } }: { trouble: ClusterTrouble }) {
  const t = text.value.cluster
  const [logs, setLogs] = useState<PodLogs>()
  const query = container === undefined ? '' : `?container=${encodeURIComponent(container)}`
  const { run, isBusy, error } = useAction(async () =>
    setLogs(await get<PodLogs>(`${clusterPath}/pods/${namespace}/${pod}/logs${query}`)),
  )
  return (
    <li>
      <div class="row">
        <span>
          <Badge mood="bad">{wordsOf(reason)}</Badge>{' '}
          <strong>
            {namespace}/{pod}
          </strong>
        </span>
        <AdminButton kind="plain small" isOff={isBusy} onClick={() => void run()}>
          {t.lastLines}
        </AdminButton>
      </div>
      <p>{plain(message)}</p>
      {error && <Problem error={error} />}
      {logs && (
        <pre class="lines" tabIndex={0} aria-label={t.lastLines}>
          {logs.lines.length === 0 ? t.noLines : logs.lines.map((line) => `${plain(line)}\n`)}
        </pre>
      )}
    </li>
  )
}
