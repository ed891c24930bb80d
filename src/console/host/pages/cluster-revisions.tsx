import { useState } from 'preact/hooks'
import type { ClusterChangeDryRun, ClusterRevisions } from '../../../cluster/desired/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Confirm, usePlan } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  Command,
  Note,
  PageHeader,
  Problem,
  Shown,
  type Mood,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useReading } from '../../shared/read.ts'
import { change, get, ifMatch, RequestError } from '../../shared/request.ts'
import { clusterPath, remote, text } from '../host.tsx'
import { Diff, Problems, Steps } from './cluster-plan.tsx'

type Revision = ClusterRevisions['items'][number]

const moodOf: Readonly<Record<Revision['outcome'], Mood>> = {
  waiting: 'info',
  held: 'warning',
  applying: 'info',
  good: 'good',
  failed: 'bad',
  rolledBack: 'bad',
  superseded: 'info',
}

/** The accepted revisions of the cluster, and the way back to one of them. */
export function Revisions() {
  const t = text.value.revisions
  const revisions = useReading<ClusterRevisions>(`${clusterPath}/revisions`, 10_000)
  const [target, setTarget] = useState<Revision>()
  return (
    <>
      <PageHeader title={t.title} />
      <Card title={t.title} icon="audit">
        <Shown reading={revisions}>
          {({ items }) => (
            <Table
              title={t.title}
              items={items}
              keyOf={({ revision }) => String(revision)}
              columns={[
                {
                  title: t.revision,
                  cell: ({ revision, isActive }) => (
                    <>
                      {revision} {isActive && <span class="tag">{t.active}</span>}
                    </>
                  ),
                },
                {
                  title: t.outcome,
                  cell: ({ outcome, reason }) => (
                    <>
                      <Badge mood={moodOf[outcome]}>{t.outcomes[outcome]}</Badge>
                      {reason !== undefined && <span class="dim"> {plain(reason)}</span>}
                    </>
                  ),
                },
                {
                  title: t.definition,
                  cell: ({ definition, kubernetesVersion }) => (
                    <>
                      {plain(`${definition.name} ${definition.version}`)}
                      <br />
                      <span class="dim">Kubernetes {kubernetesVersion}</span>
                    </>
                  ),
                },
                {
                  title: t.accepted,
                  cell: ({ creationTimestamp, by, origin }) => (
                    <>
                      {day(creationTimestamp)}
                      <br />
                      <span class="dim">{[t.origins[origin], plain(by)].filter(Boolean).join(' · ')}</span>
                    </>
                  ),
                },
                {
                  title: t.goBack,
                  isAction: true,
                  cell: (revision) => (
                    <AdminButton
                      kind="plain small"
                      isOff={revision.isActive}
                      onClick={() => setTarget(revision)}
                    >
                      {t.goBack}…
                    </AdminButton>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Card>
      <Command command={remote('cluster rollback [REVISION]')} />
      {target && (
        <GoBack
          revision={target.revision}
          onClose={() => {
            setTarget(undefined)
            revisions.again()
          }}
        />
      )}
    </>
  )
}

/** Shows what a way back changes, and what it loses, before it is asked for. */
function GoBack({ revision, onClose }: { revision: number; onClose: () => void }) {
  const t = text.value.revisions
  const write = async (isDryRun: boolean, discardChanges: boolean) => {
    return change<ClusterChangeDryRun>(
      'POST',
      `${clusterPath}/rollback?dryRun=${String(isDryRun)}`,
      { revision, ...(discardChanges ? { discardChanges } : {}) },
      { timeoutMs: 600_000, ...ifMatch(clusterPath) },
    )
  }
  const { plan, error } = usePlan(String(revision), async () => {
    // Its ETag goes with the write: only the shown change is made.
    await get(clusterPath)
    try {
      return { found: await write(true, false) }
    } catch (refusal) {
      if (!(refusal instanceof RequestError) || refusal.code !== 'WouldDiscardChanges') throw refusal
      const { copyTimestamp } = refusal.details
      const lostSince = typeof copyTimestamp === 'string' ? day(copyTimestamp) : '?'
      return { found: await write(true, true), lostSince }
    }
  })
  const { found, lostSince } = plan ?? {}
  return (
    <Confirm
      title={t.backTo(revision)}
      action={t.goBack}
      isOff={found?.isPossible !== true}
      // What is lost is confirmed by typing.
      {...(lostSince === undefined ? {} : { name: String(revision) })}
      onConfirm={() => write(false, lostSince !== undefined)}
      onClose={onClose}
    >
      <p>{t.backLong}</p>
      {lostSince !== undefined && (
        <Note mood="bad">
          <p>{t.lost(lostSince)}</p>
        </Note>
      )}
      {!plan && !error && <p role="status">{t.checking}</p>}
      {error && <Problem error={error} />}
      {found && (
        <div class="stack">
          <Problems problems={found.problems} good={t.possible} />
          {found.diff && <Diff diff={found.diff} />}
          <Steps plan={found.plan} />
        </div>
      )}
    </Confirm>
  )
}
