import type { ServiceStatus } from '../service/schemas.ts'
import type { AuditView } from '../audit/schemas.ts'
import type { SessionItem } from '../auth/schemas.ts'
import type { EdgeHostInfo } from '../host/schemas.ts'
import type { Client, Items } from './client.ts'
import { hostPath, readDetails } from './cluster-details.ts'
import { Failure } from './exit-codes.ts'
import type { Context } from './context.ts'
import type { PlatformLink } from '../uplink/schemas.ts'
import { understand } from './reply.ts'
import { renderStatus, type HostStatus } from './status-screen.ts'

/** Reads replies of the API and shows them on one screen. */
export async function status({ client, output, target }: Context): Promise<undefined> {
  const host = await client.get<EdgeHostInfo>(hostPath, ['metadata', 'spec', 'status'])
  const service = await unlessForbidden(() => client.get<ServiceStatus>(`${hostPath}/status`, []))
  const platform =
    host.spec.connectionMode === 'connected'
      ? await client.get<PlatformLink>('/v1/edge-mgmt/platform', ['isConnected'])
      : undefined
  const cluster = host.status.isClusterPhase ? await readDetails({ client }) : undefined
  const audits = await unlessForbidden(() => readAudits(client))
  const sessions = await client.list<SessionItem>('/v1/users/sessions', {}, 0)
  const found: HostStatus = {
    host,
    service,
    platform,
    cluster,
    sessions: sessions.items,
    errors: audits && understand(() => audits.items.filter(({ spec }) => spec.outcome !== 'success')),
  }
  const prefix = target.kind === 'host' ? `edgehostctl --host ${target.name}` : 'edgehostctl'
  const value = {
    ...{ host, service: service ?? null, platform: platform ?? null, cluster: cluster ?? null },
    ...{ sessions: found.sessions, errors: found.errors ?? null },
  }
  await output.show(value, (paper) => renderStatus(found, { paper, command: prefix, now: Date.now() }))
  return undefined
}

const readAudits = (client: Client): Promise<Items<AuditView>> =>
  client.list<AuditView>(`${hostPath}/audits`, {}, 50)

/** `undefined` where the user may not read a reply. */
async function unlessForbidden<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Failure && error.message.includes('(Forbidden)')) return undefined
    throw error
  }
}
