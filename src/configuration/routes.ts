import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { errorReplies } from '../api/schemas.ts'
import type { Configuration } from './configuration.ts'
import {
  ConfigurationAccepted,
  ConfigurationDryRun,
  ConfigurationQuery,
  EdgeHostConfigurations,
  EdgeHostConfigurationStatus,
} from './schemas.ts'

interface ConfigurationRoutesOptions {
  readonly configuration: Pick<Configuration, 'show' | 'status' | 'plan' | 'put'>
}

const path = '/v1/edge-mgmt/edgehosts/current/configurations'
const tags = ['configuration']

/** Proxy and authorities of this host: `/v1/edge-mgmt/edgehosts/current/configurations`. */
export const configurationRoutes: FastifyPluginAsyncTypebox<ConfigurationRoutesOptions> = async (
  app,
  { configuration },
) => {
  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getConfigurations',
        tags,
        summary: 'Proxy and certificate authorities of this host',
        description: 'Passwords of proxies are masked. The status says whether it is in place.',
        response: { 200: EdgeHostConfigurations, ...errorReplies(401) },
      },
    },
    async () => configuration.show(),
  )

  app.get(
    `${path}/status`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getConfigurationsStatus',
        tags,
        summary: 'Whether proxy and authorities of this host are in place',
        response: { 200: EdgeHostConfigurationStatus, ...errorReplies(401) },
      },
    },
    async () => configuration.status(),
  )

  app.put(
    path,
    {
      config: {
        access: 'admin',
        audit: {
          action: 'update',
          kind: 'configuration',
          changes: 'the record says what differs, without passwords',
        },
      },
      schema: {
        operationId: 'updateConfigurations',
        tags,
        summary: 'Set proxy and certificate authorities of this host, for administrators',
        description:
          'The body replaces all of them; what it does not have goes. They are for the calls of edgehostd, and for containerd and the kubelet, which restart; static pods of kubeadm get no proxy. Location names the status. While a step of the cluster runs, the change waits for its end. With dryRun the reply is 200 and says what would restart.',
        querystring: ConfigurationQuery,
        body: EdgeHostConfigurations,
        response: {
          200: ConfigurationDryRun,
          202: {
            ...ConfigurationAccepted,
            headers: { location: { type: 'string', description: 'Of its status.' } },
          },
          ...errorReplies(400, 401, 403, 409, 507),
        },
      },
    },
    async (request, reply) => {
      if (request.query.dryRun === true) {
        request.auditNote = 'dry run, nothing is changed'
        return configuration.plan(request.body)
      }
      const { uid, changes } = await configuration.put(request.body)
      request.auditResource = { uid }
      request.auditNote = changes.join('; ') || 'nothing differs'
      return reply
        .code(202)
        .header('location', `${path}/status`)
        .send({
          uid,
          message:
            changes.length === 0
              ? 'the configuration is so already'
              : `the configuration is being put in place; GET ${path}/status shows it`,
        })
    },
  )
}
