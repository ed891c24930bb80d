/** An app that only collects the routes, for the documents: it has no users, writes no log and answers no request. */
import { globSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { pino } from 'pino'
import { addTicketParameter } from '../src/api/routes-tickets.ts'
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

/** Every route of a host: what the files of its routes export. No handler is called, so the routes get no implementation. */
export function declareRooms(app: DeclaringServer): Promise<void> {
  addTicketParameter(app)
  return declare(app, routeFiles(readdirSync(sources).filter((room) => room !== 'platform')))
}

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

/** The files of the role `routes` in these rooms: `routes.ts`, `routes-NAME.ts`, and those of a folder `routes`. */
const routeFiles = (rooms: readonly string[]): string[] =>
  rooms.flatMap((room) =>
    globSync(`${room}/**/routes{,-*,/*}.ts`, { cwd: sources })
      .sort()
      .map((path) => join(sources, path)),
  )
