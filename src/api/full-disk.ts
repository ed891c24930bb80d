import type { FastifyInstance, RouteOptions } from 'fastify'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { isMutating } from './audit-hook.ts'

/** The space for work that has to go on when the disk is full; the room `store` implements it. */
export interface DiskSpace {
  /** Whether there is space for a change that is not served from the reserve. */
  admits(): boolean
  /** Gives the reserve back where the disk is full. */
  makeRoom(): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A change that is served on a full disk, from its reserve; deletions and routes whose audit is `bestEffort` are always. */
    servedOnFullDisk?: boolean
  }
}

const isServed = ({ config }: RouteOptions, method: string): boolean =>
  method === 'DELETE' ||
  config?.servedOnFullDisk === true ||
  (config?.audit !== undefined && config.audit !== false && config.audit.bestEffort === true)

/**
 * Admits changes by the space on the disk: the one place that every change of a client passes, recorded or not. Changes that free space, let
 * users and hosts in or out, or report a host alive are served from the reserve; all others are refused while only the reserve is left.
 * Reads write nothing.
 */
export function addFullDisk(app: FastifyInstance, disk: DiskSpace): void {
  app.addHook('onRoute', (route) => {
    const changing = [route.method].flat().filter(isMutating)
    if (changing.length === 0) return
    const served = new Set(changing.filter((method) => isServed(route, method)))
    // Before the credentials are read, which may write too.
    route.onRequest = [
      (request, _reply, done) => {
        if (served.has(request.method)) disk.makeRoom()
        done()
      },
      ...[route.onRequest ?? []].flat(),
    ]
    // After them and the schema, so that only those who may change something learn of the disk.
    route.preHandler = [
      (request, _reply, done) =>
        done(served.has(request.method) || !isMutating(request.method) || disk.admits() ? undefined : full()),
      ...[route.preHandler ?? []].flat(),
    ]
  })
}

/**
 * For a route that is served on a full disk: refuses a change that would take more space than the replaced data.
 * @throws AppError InsufficientStorage
 */
export function requireSpace(disk: Pick<DiskSpace, 'admits'>): void {
  if (!disk.admits()) throw full()
}

const full = () =>
  new AppError(
    generalErrors.InsufficientStorage,
    `nothing was changed: the disk of the state folder is full but for the reserve, from which deletions, logins and heartbeats are served; ${seeDisk}`,
  )
