import type { HostUsage } from '../schemas.ts'
import type { Context } from '../../ctl/client.ts'
import { hostPath } from '../../ctl/cluster.ts'
import {
  amount,
  type Column,
  type Fact,
  type Paper,
  renderFacts,
  renderTable,
  span,
} from '../../ctl/layout.ts'

type FileSystem = HostUsage['fileSystems'][number]
type Link = HostUsage['links'][number]

/** `host usage`: what moves all the time. What could not be read is left out. */
export async function hostUsage({ client, output }: Context): Promise<undefined> {
  const usage = await client.get<HostUsage>(`${hostPath}/usage`, ['clock', 'fileSystems', 'links'])
  await output.show(usage, (paper) => renderUsage(usage, paper))
  return undefined
}

function renderUsage(usage: HostUsage, paper: Paper): string {
  const { fileSystems, links } = usage
  return [
    renderFacts(usageFacts(usage), paper),
    ...(fileSystems.length > 0 ? [renderTable(fileSystems, spaceLayout, paper.columns)] : []),
    ...(links.length > 0 ? [renderTable(links, linkLayout, paper.columns)] : []),
  ].join('\n')
}

function usageFacts({ uptimeSeconds, load, memory, clock }: HostUsage): Fact[] {
  const facts: Fact[] = []
  const add = (label: string, line: string) => facts.push({ label, lines: [line] })
  if (uptimeSeconds !== undefined) add('Uptime', span(uptimeSeconds))
  if (load) {
    const averages = [load.oneMinute, load.fiveMinutes, load.fifteenMinutes]
    add('Load', `${averages.map((each) => each.toFixed(2)).join(' ')} in 1, 5 and 15 minutes`)
  }
  if (memory) {
    const [used, total, available] = [memory.usedBytes, memory.totalBytes, memory.availableBytes].map(amount)
    add('Memory', `${used} of ${total} used, ${available} available`)
  }
  return [...facts, clockFact(clock.isSynchronized)]
}

function clockFact(isSynchronized: boolean | undefined): Fact {
  const label = 'Clock'
  if (isSynchronized === undefined) return { label, lines: ['not known: another time service runs'] }
  return isSynchronized
    ? { label, lines: ['set by a time server'], mood: 'good' }
    : { label, lines: ['not set by a time server'], mood: 'warning' }
}

const spaceLayout: readonly Column<FileSystem>[] = [
  { title: 'MOUNTED ON', read: ({ mountPoint }) => mountPoint, isFlexible: true },
  { title: 'SIZE', read: ({ totalBytes }) => amount(totalBytes) },
  { title: 'USED', read: ({ usedBytes }) => amount(usedBytes) },
  { title: 'FREE', read: ({ freeBytes }) => amount(freeBytes) },
]

const linkLayout: readonly Column<Link>[] = [
  { title: 'LINK', read: ({ name }) => name, isFlexible: true },
  { title: 'STATE', read: ({ state }) => state },
]
