import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import { prefersOpenMetrics } from './format.ts'
import type { Exposition } from './exposition.ts'
import type { ScrapeAccess } from './scrape-access.ts'

export interface MetricsRoutesOptions {
  readonly read: (format: 'prometheus' | 'openmetrics') => Promise<Exposition>
  readonly scrapeAccess: Pick<ScrapeAccess, 'admits'>
}

/** `/metrics`, which Prometheus scrapes. */
export const metricsRoutes: FastifyPluginAsyncTypebox<MetricsRoutesOptions> = async (
  app,
  { read, scrapeAccess },
) => {
  app.get(
    '/metrics',
    {
      config: {
        access: 'admin',
        limited: false,
        // Behind a proxy no client is on the loopback, whatever the proxy says.
        bypass: ({ peer, headers }) =>
          scrapeAccess.admits(peer.isProxied ? '' : peer.address, headers.authorization),
      },
      schema: {
        operationId: 'getMetrics',
        tags: ['service'],
        summary: 'Metrics of the daemon, for Prometheus',
        description:
          "Clients on the host's loopback need no token; other clients send an administrator's token, or the one in " +
          '`metrics.tokenFile`, as `Authorization: Bearer`. Text format 0.0.4, or OpenMetrics 1.0.0 where `Accept` ' +
          'prefers it. 404 with `metrics.enabled: false`. docs/metrics.md says what each metric means.',
        response: {
          200: {
            description: 'The metrics.',
            content: {
              'text/plain': { schema: Type.String() },
              'application/openmetrics-text': { schema: Type.String() },
            },
          },
          ...errorReplies(401, 403),
        },
      },
    },
    async ({ headers }, reply) => {
      const { contentType, text } = await read(
        prefersOpenMetrics(headers.accept) ? 'openmetrics' : 'prometheus',
      )
      return reply.header('content-type', contentType).header('vary', 'Accept').send(text)
    },
  )
}
