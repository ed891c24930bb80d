import type { FastifyInstance } from 'fastify'
import { apiRoutes } from './api/routes.ts'
import { authRoutes, type AuthRoutesOptions } from './auth/routes.ts'
import { hostRoutes, type HostRoutesOptions } from './host/routes.ts'

/** What each room's routes need. */
export interface Rooms {
  readonly auth: AuthRoutesOptions
  readonly host: HostRoutesOptions
}

/** Adds the routes of every room. The daemon and the API documents are made from this one list. */
export async function registerRooms(app: FastifyInstance, rooms: Rooms): Promise<void> {
  await app.register(apiRoutes)
  await app.register(authRoutes, rooms.auth)
  await app.register(hostRoutes, rooms.host)
}
