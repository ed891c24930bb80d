import type { Static } from 'typebox'
import type { AuditView, VerifyReply } from '../schemas.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { parseLimit } from '../../ctl/limit.ts'
import { filterOf, noteRest } from '../../ctl/list.ts'
import type { Context } from '../../ctl/context.ts'
import { parsePointInTime } from '../../ctl/point-in-time.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { count, moment, plural } from '../../ctl/text.ts'

export const auditsPath = '/v1/edge-mgmt/edgehosts/current/audits'
// The host reads every record.
const verifyMs = 600_000

const layout: readonly Column<AuditView>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.createTimestamp) },
  { title: 'WHO', read: ({ spec: { actor } }) => actor.uid || actor.actorType, isFlexible: true },
  { title: 'FROM', read: ({ spec: { actor } }) => actor.address, isFlexible: true },
  { title: 'OUTCOME', read: ({ spec }) => spec.outcome },
  { title: 'WHAT', read: ({ spec }) => spec.message, isFlexible: true },
]

export async function listAudits({
  client,
  line,
  output,
}: Context<'limit' | 'filter' | 'since' | 'until'>): Promise<undefined> {
  const { since, until } = line.options
  const now = Date.now()
  const query = {
    ...filterOf(line),
    ...(since === undefined ? {} : { startTime: parsePointInTime('--since', since, now) }),
    ...(until === undefined ? {} : { endTime: parsePointInTime('--until', until, now) }),
  }
  const found = await client.list<AuditView>(auditsPath, query, parseLimit(line, 50))
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  const { listmeta, items } = found
  if (listmeta.continue !== '') noteRest(output, items.length, listmeta.count)
  return undefined
}

export async function verifyAudits({ client, line, output }: Context<'head'>): Promise<'failed' | undefined> {
  const { head } = line.options
  const query = head === undefined ? '' : `?${new URLSearchParams({ head }).toString()}`
  const found = await client.get<Static<typeof VerifyReply>>(
    `${auditsPath}/verify${query}`,
    ['count', 'first', 'head', 'isIntact', 'unwritten'],
    verifyMs,
  )
  const { isIntact, problem, unwritten } = found
  await output.show(found, (paper) =>
    renderFacts(
      [
        isIntact
          ? { label: 'Trail', lines: ['whole and unaltered'], mood: 'good' }
          : {
              label: 'Trail',
              lines: [`record ${problem?.number ?? '?'}: ${problem?.message ?? 'damaged'}`],
              mood: 'bad',
            },
        { label: 'Records', lines: [`${count(found.count)}, the oldest is number ${found.first}`] },
        { label: 'Head', lines: [`${found.head.number}:${found.head.hash}`] },
        ...(unwritten > 0
          ? [
              {
                label: 'Not stored',
                lines: [
                  `${plural(unwritten, 'record')}, only in the journal: journalctl -u edgehostd -g audit`,
                ],
                mood: 'warning' as const,
              },
            ]
          : []),
      ],
      paper,
    ),
  )
  return isIntact ? undefined : 'failed'
}
