/** An app that only collects the routes, for the documents: it has no users, writes no log and answers no request. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { pino } from 'pino'
import { createServer } from '../src/api/server.ts'

export type DeclaringServer = ReturnType<typeof createDeclaringServer>

/** The app before its routes are added, so that hooks can collect them. */
export const createDeclaringServer = () =>
  createServer({
    log: pino({ level: 'silent' }),
    bodyLimitBytes: 1,
    mode: 'airgap',
    identify: () => undefined,
    onAuthenticated: () => undefined,
  }).app

/** Every route of a host: what each `routes.ts` exports. No handler is called, so the routes get no implementation. */
export const declareRooms = (app: DeclaringServer): Promise<void> =>
  declare(app, routeFiles(readdirSync(sources).filter((room) => room !== 'platform')))

/** Every route of the platform. */
export const declarePlatform = (app: DeclaringServer): Promise<void> =>
  declare(app, routeFiles(['platform', 'metrics']))

async function declare(app: DeclaringServer, files: readonly string[]): Promise<void> {
  for (const file of files) {
    const plugins = Object.entries((await import(file)) as Record<string, unknown>)
    for (const [name, plugin] of plugins)
      if (name.endsWith('Routes')) await app.register(plugin as FastifyPluginAsync<object>, {})
  }
  await app.ready()
}

const sources = join(import.meta.dirname, '../src')

/** `routes.ts` of each room, or the files of its folder `routes`. */
function routeFiles(rooms: readonly string[]): string[] {
  return rooms.flatMap((room) => {
    const folder = join(sources, room, 'routes')
    const names = existsSync(folder) ? readdirSync(folder) : []
    const one = join(sources, room, 'routes.ts')
    return [...(existsSync(one) ? [one] : []), ...names.map((name) => join(folder, name))]
  })
}
