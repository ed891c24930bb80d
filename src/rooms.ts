import type { FastifyInstance } from 'fastify'
import { apiRoutes, type ApiRoutesOptions } from './service/routes.ts'
import { auditRoutes, type AuditRoutesOptions } from './audit/routes.ts'
import { authRoutes, type AuthRoutesOptions } from './auth/routes.ts'
import { clusterRoutes, type ClusterRoutesOptions } from './definition/routes.ts'
import { contentRoutes, type ContentRoutesOptions } from './upload/routes.ts'
import { hostRoutes, type HostRoutesOptions } from './host/routes.ts'
import { metricsRoutes, type MetricsRoutesOptions } from './metrics/routes.ts'

/** What each room's routes need. */
export interface Rooms {
  readonly api: ApiRoutesOptions
  readonly audit: AuditRoutesOptions
  readonly auth: AuthRoutesOptions
  readonly cluster: ClusterRoutesOptions
  readonly content: ContentRoutesOptions
  readonly host: HostRoutesOptions
  /** Left out where nobody may read them. */
  readonly metrics: MetricsRoutesOptions | undefined
}

/** Adds the routes of every room. The daemon and the API documents are made from this one list. */
export async function registerRooms(app: FastifyInstance, rooms: Rooms): Promise<void> {
  await app.register(apiRoutes, rooms.api)
  await app.register(auditRoutes, rooms.audit)
  await app.register(authRoutes, rooms.auth)
  await app.register(clusterRoutes, rooms.cluster)
  await app.register(contentRoutes, rooms.content)
  await app.register(hostRoutes, rooms.host)
  if (rooms.metrics) await app.register(metricsRoutes, rooms.metrics)
}
