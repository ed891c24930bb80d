import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import {
  renderFacts,
  type Fact,
  type Paper,
  renderTable,
  type Column,
  moment,
  oneLine,
} from '../../ctl/layout.ts'
import { parseBody } from '../../ctl/reply.ts'
import type { CertificateDetails, RenewalAccepted } from '../schemas.ts'
import { clusterPath } from '../../ctl/cluster.ts'
import { showUntil } from './watch.ts'

interface Row {
  readonly name: string
  readonly authority: string
  readonly node: string
  readonly issued: string
  readonly ends: string
}

const layout: readonly Column<Row>[] = [
  { title: 'CERTIFICATE', read: ({ name }) => name, isFlexible: true },
  { title: 'SIGNED BY', read: ({ authority }) => authority, isFlexible: true },
  { title: 'NODE', read: ({ node }) => node, isFlexible: true },
  { title: 'ISSUED', read: ({ issued }) => moment(issued) },
  { title: 'ENDS', read: ({ ends }) => moment(ends) },
]

const read = ({ client }: Pick<Context, 'client'>) =>
  client.get<CertificateDetails>(`${clusterPath}/certificates`, ['needsRenewal', 'certificates', 'problems'])

/** `edgehostctl cluster certificates [renew]`. */
export async function certificates(context: Context<'wait'>): Promise<undefined> {
  const { line, output } = context
  const [verb] = line.arguments
  if (verb === 'renew') return renew(context)
  if (verb !== undefined) throw new Failure('usage', `${JSON.stringify(verb)}: the only word here is renew`)
  if (line.options.wait !== undefined) throw new Failure('usage', '--wait is for cluster certificates renew')
  const details = await read(context)
  await output.show(details, (paper) => render(details, paper))
  return undefined
}

function render(details: CertificateDetails, paper: Paper): string {
  const rows = details.certificates.flatMap((authority) => [
    rowOf(authority, '', ''),
    ...authority.childCerts.map((each) => rowOf(each, authority.name, each.nodeName)),
  ])
  return [
    renderFacts(factsOf(details), paper),
    ...(rows.length > 0 ? [renderTable(rows, layout, paper.columns)] : []),
  ].join('\n')
}

const rowOf = (
  { name, issueDate, expirationDate }: Pick<Row, 'name'> & { issueDate: string; expirationDate: string },
  authority: string,
  node: string,
): Row => ({ name, authority, node, issued: issueDate, ends: expirationDate })

function factsOf({ needsRenewal, earliestAutoRenewalTime, problems, renewal }: CertificateDetails): Fact[] {
  const next = earliestAutoRenewalTime === undefined ? 'never' : moment(earliestAutoRenewalTime)
  return [
    needsRenewal
      ? { label: 'Renewal', lines: ['due now; edgehostd does it'], mood: 'warning' }
      : { label: 'Renewal', lines: [`by itself: ${next}`], mood: 'good' },
    ...(renewal ? [{ label: 'Asked for', lines: [renewalLine(renewal)] }] : []),
    ...(problems.length > 0 ? [{ label: 'Problems', lines: problems, mood: 'bad' as const }] : []),
  ]
}

function renewalLine({
  by,
  creationTimestamp,
  endTimestamp,
  reason,
}: NonNullable<CertificateDetails['renewal']>): string {
  const asked = `${moment(creationTimestamp)} by ${by}`
  if (endTimestamp !== undefined) return `${asked}, done ${moment(endTimestamp)}`
  return `${asked}, under way${reason === undefined ? '' : `; the last try failed: ${reason}`}`
}

const pauseMs = 500

async function renew(context: Context<'wait'>): Promise<undefined> {
  const { client, line, output } = context
  const reply = await client.change('POST', `${clusterPath}/renew-certificates`)
  const accepted = parseBody<RenewalAccepted>(reply, ['uid'])
  if (line.options.wait === undefined)
    await output.show(accepted, () => `${oneLine(accepted.message)}: edgehostctl cluster certificates\n`)
  else {
    await followRenewal(context, accepted.uid)
    output.note('The certificates are renewed.')
  }
  return undefined
}

/** Shows events until a renewal is done. @throws Failure when a try has failed */
async function followRenewal(context: Context<'wait'>, uid: string): Promise<void> {
  const { renewal } = await read(context)
  if (!isUnderWay(renewal, uid)) return
  const since = Date.parse(renewal.creationTimestamp)
  await showUntil(context, {
    isFirst: ({ metadata }) => Date.parse(metadata.creationTimestamp) >= since,
    async isLast({ reason }) {
      if (reason === 'Deleting' || reason === 'Deleted')
        throw new Failure('failed', 'the cluster is being deleted')
      if (reason === 'CertificatesRenewed') await waitUntilDone(context, uid)
      if (reason !== 'StepFailed') return reason === 'CertificatesRenewed'
      // Of another step too: the reply of GET decides, a moment later.
      await sleep(pauseMs)
      return hasEnded(context, uid)
    },
    isPatient: true,
    interrupted: 'Interrupted. The host continues with the renewal: edgehostctl cluster certificates',
  })
}

type Renewal = NonNullable<CertificateDetails['renewal']>

/** Another renewal may have taken the place of this one, which was done then. */
const isUnderWay = (renewal: Renewal | undefined, uid: string): renewal is Renewal =>
  renewal?.uid === uid && renewal.endTimestamp === undefined

/** The event may come a moment before GET shows it. @throws Failure when a try has failed */
async function waitUntilDone(context: Pick<Context, 'client'>, uid: string): Promise<void> {
  while (!(await hasEnded(context, uid))) await sleep(pauseMs)
}

/** Whether a renewal is over; the daemon may be restarted meanwhile. @throws Failure when a try has failed */
async function hasEnded(context: Pick<Context, 'client'>, uid: string): Promise<boolean> {
  try {
    const { renewal } = await read(context)
    if (!isUnderWay(renewal, uid)) return true
    if (renewal.reason === undefined) return false
    throw new Failure('failed', `${renewal.reason}; edgehostd tries again, see: edgehostctl cluster watch`)
  } catch (error) {
    if (!(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    return false
  }
}
