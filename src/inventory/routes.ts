import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { hash } from 'node:crypto'
import { Type } from 'typebox'
import { matchesEtag } from '../api/etag.ts'
import { errorReplies, notModified } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Host } from '../host/room.ts'
import type { Reader } from './reader.ts'
import { agree } from './rules/agree.ts'
import { cannotBeRead } from './rules/tools.ts'
import { Inventory } from './schemas.ts'
import type { StoredInventory } from './stored-inventory.ts'

export interface InventoryRoutesOptions {
  readonly stored: StoredInventory
  readonly reader: Reader
  readonly hardware: Host['hardware']
}

/** Hardware inventory of this machine: `/v1/edge-mgmt/edgehosts/current/inventory`. */
export const inventoryRoutes: FastifyPluginAsyncTypebox<InventoryRoutesOptions> = async (app, options) => {
  const { stored, reader, hardware } = options

  app.get(
    '/v1/edge-mgmt/edgehosts/current/inventory',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getCurrentEdgeHostInventory',
        tags: ['edgehosts'],
        summary: 'Parts of this host: makers, models and serial numbers',
        description:
          'The inventory is read a minute after the first start, daily, and a minute after a device was added or removed; the first request waits for the first reading. ' +
          'Send the ETag of the reply you hold in If-None-Match to get 304 until the inventory is read again.',
        querystring: Type.Object({
          refresh: Type.Optional(
            Type.Boolean({ description: 'Read the inventory again before the reply, which takes seconds.' }),
          ),
        }),
        response: { 200: Inventory, ...notModified, ...errorReplies(400, 401, 403, 503) },
      },
    },
    async (request, reply) => {
      if (request.query.refresh === true || stored.current() === undefined) await reader.refresh()
      const reading = stored.current()
      const failure = reader.failure()
      if (reading === undefined)
        throw new AppError(
          generalErrors.NotReady,
          `the inventory cannot be read: ${failure ?? 'the daemon is stopping'}`,
        )
      const { conditions = [], ...parts } = agree(reading.hardware, hardware())
      const all = failure === undefined ? conditions : [...conditions, cannotBeRead('inventory', failure)]
      const inventory: Inventory = {
        readTimestamp: new Date(reading.readAt).toISOString(),
        ...parts,
        ...(all.length > 0 ? { conditions: all } : {}),
      }
      const etag = `"${hash('sha256', JSON.stringify(inventory)).slice(0, 32)}"`
      void reply.header('etag', etag)
      if (matchesEtag(request, etag)) return reply.code(304).send(null)
      return inventory
    },
  )
}
