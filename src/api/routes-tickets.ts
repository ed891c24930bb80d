import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { refusedField } from '../errors/refused-field.ts'
import { accessTokenOf, authorizeByRole, sessionCallerOf } from './guard.ts'
import { decodePath } from './rate/rows.ts'
import type { RouteTable } from './route-table.ts'
import { errorReplies } from './schemas.ts'
import type { Tickets } from './tickets.ts'

const longestPath = 2_048

const parameter = Type.Object({
  ticket: Type.Optional(
    Type.String({
      maxLength: 100,
      description:
        'In place of the token: of POST /v1/edge-mgmt/edgehosts/current/tickets, for this path, once. The last parameter.',
    }),
  ),
})

/** Declares the parameter `ticket` for each download. To be called before routes are added. */
export function addTicketParameter(app: FastifyInstance): void {
  app.addHook('onRoute', ({ config, schema }) => {
    if (config?.ticket !== true || !schema) return
    const own = schema.querystring as { readonly properties?: Record<string, never> } | undefined
    // In its place: the document keeps this object.
    Object.assign(schema, { querystring: Type.Object({ ...own?.properties, ...parameter.properties }) })
  })
}

const TicketBody = Type.Object({
  path: Type.String({
    maxLength: longestPath,
    pattern: '^/[!"$-~]*$',
    accepts: 'the path of a download as it is sent, from the first slash, percent-encoded, with its query',
    description: 'Of the download, for example /v1/edge-mgmt/edgehosts/current/download-logs.',
  }),
})

const IssuedTicket = Type.Object(
  {
    ticket: Type.String(),
    downloadPath: Type.String({ description: 'The path with the ticket, to be asked for as it is.' }),
    expirationTimestamp: Type.String({ format: 'date-time' }),
  },
  { title: 'DownloadTicket' },
)
export type IssuedTicket = Static<typeof IssuedTicket>

interface TicketRoutesOptions {
  readonly tickets: Tickets
  readonly table: RouteTable
}

/** Tickets for downloads: `POST /v1/edge-mgmt/edgehosts/current/tickets`. */
export const ticketRoutes: FastifyPluginAsyncTypebox<TicketRoutesOptions> = async (
  app,
  { tickets, table },
) => {
  app.post(
    '/v1/edge-mgmt/edgehosts/current/tickets',
    {
      config: {
        access: 'viewer',
        servedInReset: true,
        audit: {
          action: 'activity',
          kind: 'ticket',
          changes: 'a ticket changes nothing, and its code is a secret',
          // The support archive is needed most when the disk is full.
          bestEffort: true,
        },
      },
      schema: {
        operationId: 'createTicket',
        tags: ['edgehosts'],
        summary: 'A ticket for one download, for a browser, which sends no token with a link',
        description:
          'GET downloadPath without Authorization is then answered as with this token: once, within 30 seconds, while the session lasts. The path and its query have to be exactly those of the ticket. The downloads are those whose query has ticket. A ticket is void once it was shown, also where the download is refused or breaks off. A session has at most 16 unused tickets.',
        body: TicketBody,
        response: { 201: IssuedTicket, ...errorReplies(400, 401, 403, 429) },
      },
    },
    async (request, reply) => {
      const { path } = request.body
      const caller = sessionCallerOf(request)
      const [plain = ''] = path.split('?', 1)
      const download = findDownload(table, plain)
      if (!download || /[?&]ticket(?:[=&]|$)/.test(path))
        throw refusedField('path', `is no download that takes a ticket; these do: ${listDownloads(table)}`)
      request.auditResource = { name: plain }
      const { refusal } = authorizeByRole(request, caller, download.access)
      if (refusal) throw refusal
      const { expiresAt, ...issued } = tickets.issue(caller, accessTokenOf(request) ?? '', path)
      return reply.code(201).send({ ...issued, expirationTimestamp: new Date(expiresAt).toISOString() })
    },
  )
}

/** The download at a path; none where the router might give the path to another route. */
function findDownload({ routes }: RouteTable, path: string) {
  const decoded = decodePath(path)
  const found = routes.filter(({ method, matcher }) => method === 'GET' && matcher.test(decoded))
  return found.every(({ takesTicket }) => takesTicket) ? found[0] : undefined
}

const listDownloads = ({ routes }: RouteTable) =>
  routes
    .filter(({ takesTicket }) => takesTicket)
    .map(({ url }) => url)
    .join(', ')
