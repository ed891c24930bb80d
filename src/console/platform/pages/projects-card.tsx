import { useEffect, useState } from 'preact/hooks'
import { plain } from '../../shared/format.ts'
import { Badge, Card } from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { get, RequestError } from '../../shared/request.ts'
import { hrefOf } from '../../shared/shell.tsx'
import { pause } from '../../shared/stream.ts'
import { allOf } from '../filter.ts'
import { text } from '../platform.ts'
import { projects } from '../session.ts'

const everyMs = 60_000

/** Projects whose hosts are counted; of more the platform would be asked too often. */
const mostCounted = 40

const problemsIn = async (project: string, signal: AbortSignal): Promise<number> => {
  const query = new URLSearchParams({
    filters: allOf([['status.health.state', 'unhealthy']]),
    fields: 'metadata.uid',
    limit: '1',
    ProjectUid: project,
  })
  return (await get<{ listmeta: { count: number } }>(`/v1/edgehosts?${query.toString()}`, { signal }))
    .listmeta.count
}

/** Numbers of hosts with problems by the uids of their projects, read one after the other, again and again while the page is seen. */
function useProblems(uids: readonly string[]): ReadonlyMap<string, number> {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map())
  useEffect(() => {
    const end = new AbortController()
    const isOver = () => end.signal.aborted
    async function readOnAndOn(): Promise<void> {
      while (!isOver()) {
        const read = new Map<string, number>()
        for (const uid of document.hidden ? [] : uids)
          try {
            read.set(uid, await problemsIn(uid, end.signal))
          } catch (error) {
            if (isOver()) return
            // The banner says that there is no answer; a project that was deleted has no number.
            if (!(error instanceof RequestError)) throw error
          }
        if (read.size > 0) setCounts(read)
        await pause(everyMs, end.signal)
      }
    }
    void readOnAndOn()
    return () => end.abort()
  }, [uids.join(' ')])
  return counts
}

/** The projects of the tenant, those with problems first: a host is in one of them, or in the tenant itself. */
export function ProjectsCard() {
  const t = text.value.scope
  const counted = projects.value.slice(0, mostCounted).map(({ metadata }) => metadata.uid)
  const counts = useProblems(counted)
  const problemsOf = (uid: string) => counts.get(uid) ?? 0
  return (
    <Card title={t.projects} icon="network">
      <Table
        title={t.projects}
        items={projects.value.toSorted(
          (one, other) => problemsOf(other.metadata.uid) - problemsOf(one.metadata.uid),
        )}
        keyOf={({ metadata }) => metadata.uid}
        columns={[
          {
            title: t.project,
            cell: ({ metadata: { name, uid } }) => <a href={hrefOf('/hosts', uid)}>{plain(name)}</a>,
          },
          {
            title: text.value.hosts.title,
            cell: ({ metadata: { uid } }) => {
              const count = counts.get(uid)
              if (count === undefined) return <span class="dim">…</span>
              return <Badge mood={count > 0 ? 'bad' : 'good'}>{t.problems(count)}</Badge>
            },
          },
        ]}
      />
    </Card>
  )
}
