import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { sendEvents } from '../api/event-stream.ts'
import { requestEnd } from '../api/request-end.ts'
import { errorReplies } from '../api/schemas.ts'
import { priorities } from '../host/journal.ts'
import { isCursor, parseSince, parseUnits, type Logs } from './logs.ts'

interface LogRoutesOptions {
  readonly logs: Logs
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The logs of this host, at once and as they come. */
export const logRoutes: FastifyPluginAsyncTypebox<LogRoutesOptions> = async (app, { logs, now }) => {
  app.get(
    '/v1/edge-mgmt/edgehosts/current/logs',
    {
      // A HEAD request would read the journal too.
      exposeHeadRoute: false,
      // As the error logs, these are masked; programs may still write secrets that the masks do not recognise.
      config: { access: 'admin', audit: { action: 'activity', kind: 'logs' } },
      schema: {
        operationId: 'readLogs',
        tags: ['diagnosis'],
        summary:
          'Logs of edgehostd, kubelet, containerd, the kernel and the steps of the cluster, for administrators',
        description:
          'JSON lines, the newest last; with follow server-sent events, whose id is the cursor of the entry, at most four followers at a time. Masked as the error logs are. Lines of kubelet and containerd are those of the present cluster. Where the search took too long, the header Searched-Since says how far back it went.',
        querystring: Type.Object({
          unit: Type.Optional(
            Type.String({
              maxLength: 100,
              description:
                'edgehostd, kubelet, containerd, kernel, steps, with commas between; by default all.',
            }),
          ),
          since: Type.Optional(
            Type.String({
              maxLength: 40,
              description: 'A time (RFC 3339), or a span before now: 15m, 2h, 7d.',
            }),
          ),
          priority: Type.Optional(
            Type.Union(
              [
                Type.Literal('emerg'),
                Type.Literal('alert'),
                Type.Literal('crit'),
                Type.Literal('err'),
                Type.Literal('warning'),
                Type.Literal('notice'),
                Type.Literal('info'),
                Type.Literal('debug'),
              ],
              {
                description:
                  'Only entries that are at least this urgent. Lines of kubelet and containerd have theirs in the text.',
              },
            ),
          ),
          lines: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 10_000,
              default: 1_000,
              description: 'Most entries, the last ones.',
            }),
          ),
          follow: Type.Optional(Type.Boolean({ description: 'Whether entries follow as they come.' })),
        }),
        response: {
          200: {
            description: 'Entries.',
            content: {
              'application/x-ndjson': { schema: Type.String() },
              'text/event-stream': { schema: Type.String() },
            },
          },
          ...errorReplies(400, 401, 403, 429, 503),
        },
      },
    },
    async (request, reply) => {
      const { unit, since, priority = 'debug', lines = 1_000, follow } = request.query
      const question = {
        units: parseUnits(unit),
        since: parseSince(since, now()),
        priority: priorities.indexOf(priority),
        lines,
      }
      request.auditNote = `${question.units.join(', ')}${follow === true ? ', followed' : ''}`
      if (follow === true) {
        const giveBack = logs.takePlace()
        try {
          return await sendEvents(request, reply, async ({ send, signal, lastEventId }) => {
            const after = lastEventId !== undefined && isCursor(lastEventId) ? lastEventId : undefined
            try {
              await logs.follow(
                question,
                (entry) => void send({ ...(entry.cursor === '' ? {} : { id: entry.cursor }), data: entry }),
                signal,
                after,
              )
            } finally {
              giveBack()
            }
          })
        } catch (error) {
          giveBack()
          throw error
        }
      }
      const { entries, searchedSince } = await logs.read(question, requestEnd(request, reply))
      if (searchedSince !== undefined)
        void reply.header('searched-since', new Date(searchedSince).toISOString())
      return reply
        .type('application/x-ndjson')
        .send(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
    },
  )
}
