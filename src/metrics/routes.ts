import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import type { Exposition } from './exposition.ts'
import type { ScrapeAccess } from './scrape-access.ts'

/**
 * Whether an `Accept` field prefers OpenMetrics 1.0.0 to the text format 0.0.4. Prometheus names both, with
 * weights; a client that names neither gets the text format.
 */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  let openMetrics = 0
  let text = 0
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const [type, ...parameters] = part.split(';').map((each) => each.trim())
    const weight = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1) || 0
    const version = parameters.find((each) => each.startsWith('version='))?.slice(8)
    if (type === 'application/openmetrics-text' && (version === undefined || version === '1.0.0'))
      openMetrics = Math.max(openMetrics, weight)
    if (type === 'text/plain') text = Math.max(text, weight)
  }
  return openMetrics > 0 && openMetrics >= text
}

interface MetricsRoutesOptions {
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
