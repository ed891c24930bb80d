import type { AuditView } from '../../src/audit/schemas.ts'
import type { TestEdge } from './test-edge.ts'

export interface AuditsReply {
  items: AuditView[]
  listmeta: { continue: string; count: number; limit: number; offset: number }
}

export const auditsPath = '/v1/edge-mgmt/edgehosts/current/audits'

/** @param token of an administrator */
export const listAudits = async (edge: TestEdge, token: string, query = ''): Promise<AuditsReply> =>
  (await edge.get(`${auditsPath}${query}`, token)).json<AuditsReply>()

export const newestAudit = async (edge: TestEdge, token: string): Promise<AuditView> => {
  const [newest] = (await listAudits(edge, token, '?limit=1')).items
  if (!newest) throw new Error('the trail is empty')
  return newest
}

/** The record that a reply names. */
export const auditUidOf = ({ headers }: { headers: Record<string, unknown> }) => headers.audituid
