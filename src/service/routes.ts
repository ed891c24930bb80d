import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Health } from './health.ts'
import { errorReplies } from '../api/schemas.ts'
import { documentRoute, sayWhether } from '../api/system-routes.ts'
import { AttentionList, ServiceStatus } from './schemas.ts'

export interface ServiceRoutesOptions {
  readonly health: Health
  readonly status: () => Promise<ServiceStatus>
  readonly attention: () => Promise<AttentionList>
}

const Well = Type.Object({ status: Type.Literal('ok') })
const well = { status: 'ok' as const }

/** Liveness, readiness and status of the daemon, and the document of its API. */
export const serviceRoutes: FastifyPluginAsyncTypebox<ServiceRoutesOptions> = async (
  app,
  { health, status, attention },
) => {
  app.get(
    '/v1/ping',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'ping',
        tags: ['service'],
        summary: 'Whether the daemon answers',
        response: { 200: Type.Object({ msg: Type.String() }) },
      },
    },
    async () => ({ msg: 'pong' }),
  )

  app.get(
    '/healthz',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'getHealth',
        tags: ['service'],
        summary: 'Whether the daemon is alive; if not, a restart helps',
        response: { 200: Well, ...errorReplies(503) },
      },
    },
    sayWhether(() => health.isAlive(), well),
  )

  app.get(
    '/readyz',
    {
      config: { access: 'open', limited: false },
      schema: {
        operationId: 'getReadiness',
        tags: ['service'],
        summary: 'Whether the daemon can do all its work now',
        response: { 200: Well, ...errorReplies(503) },
      },
    },
    sayWhether(() => health.isReady(), well),
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/status',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getServiceStatus',
        tags: ['service'],
        summary: 'State of the daemon: start, addresses, certificate, failing checks, disk space',
        response: { 200: ServiceStatus, ...errorReplies(401, 403) },
      },
    },
    async () => status(),
  )

  app.get(
    '/v1/edge-mgmt/edgehosts/current/attention',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getAttention',
        tags: ['service'],
        summary: 'What an operator has to know or to do about this host now, each with its next command',
        description: 'All of it, the most urgent first, without listmeta; an item is gone when its cause is.',
        response: { 200: AttentionList, ...errorReplies(401, 403) },
      },
    },
    async () => attention(),
  )

  await documentRoute(app, {
    tag: 'service',
    load: async () => (await import('../../docs/openapi.json', { with: { type: 'json' } })).default,
  })
}
