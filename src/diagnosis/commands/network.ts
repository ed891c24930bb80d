import type { Context } from '../../ctl/client.ts'
import type { ExitName } from '../../ctl/exit-codes.ts'
import { eachLine, oneLine, renderTable, type Column } from '../../ctl/layout.ts'
import type { CheckStage, ConnectivityCheck, PingResponse, TraceRouteResponse } from '../schemas.ts'

const path = '/v1/edge-mgmt/edgehosts/connectivity'
// The host has 30 s.
const timeoutMs = 40_000

const layout: readonly Column<CheckStage>[] = [
  { title: 'STAGE', read: ({ name }) => name },
  { title: 'RESULT', read: ({ status }) => status },
  { title: 'TIME', read: ({ durationMs }) => `${durationMs} ms` },
  { title: 'MESSAGE', read: ({ message }) => message, isFlexible: true },
]

function query({ line }: Pick<Context<'family'>, 'line'>, more: Readonly<Record<string, string>>): string {
  const { family } = line.options
  return new URLSearchParams({ ...more, ...(family === undefined ? {} : { family }) }).toString()
}

/** `edgehostctl network ping TARGET`. */
export async function pingTarget(context: Context<'family'>): Promise<ExitName | undefined> {
  const { client, line, output } = context
  const [endpoint = ''] = line.arguments
  const asked = query(context, { endpoint, structured: 'true' })
  const reply = await client.get<Required<PingResponse>>(`${path}/ping?${asked}`, ['result'], timeoutMs)
  await output.show(reply, () => withNext(reply.pingHostStatus, reply.result.next))
  return reply.result.isReachable ? undefined : 'failed'
}

/** `edgehostctl network traceroute TARGET`. */
export async function traceTarget(context: Context<'family'>): Promise<ExitName | undefined> {
  const { client, line, output } = context
  const [endpoint = ''] = line.arguments
  const asked = query(context, { endpoint, structured: 'true' })
  const reply = await client.get<Required<TraceRouteResponse>>(
    `${path}/traceroute?${asked}`,
    ['result'],
    timeoutMs,
  )
  await output.show(reply, () => withNext(reply.traceRouteStatus, reply.result.next))
  return reply.result.isReachable ? undefined : 'failed'
}

/** `edgehostctl network check [TARGET]`. */
export async function checkTarget(context: Context<'family' | 'kind'>): Promise<ExitName | undefined> {
  const { client, line, output } = context
  const [target] = line.arguments
  const { kind = target === undefined ? 'platform' : 'tls' } = line.options
  const asked = query(context, { kind, ...(target === undefined ? {} : { target }) })
  const found = await client.get<ConnectivityCheck>(`${path}/check?${asked}`, ['isOk', 'stages'], timeoutMs)
  await output.show(found, ({ columns }) => withNext(renderTable(found.stages, layout, columns), found.next))
  return found.isOk ? undefined : 'failed'
}

const withNext = (text: string, next: string | undefined): string =>
  `${eachLine(text.trimEnd())}\n${next === undefined ? '' : `Next: ${oneLine(next)}\n`}`
