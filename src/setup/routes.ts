import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import { readEntries, refusedField } from '../errors/refused-field.ts'
import { mostServers, problemOfServer } from '../cluster/desired/host-settings.ts'
import { problemOfHostName } from './rules.ts'
import { HostName, HostNameRequest, HostTime, HostTimeRequest } from './schemas.ts'

export interface SetupRoutesOptions {
  readonly hostName: () => string
  readonly readTime: () => Promise<HostTime>
  /** @throws AppError HostInCluster, HostNotSet */
  readonly setName: (name: string) => Promise<void>
  /** @throws AppError HostInCluster, HostNotSet */
  readonly setServers: (servers: readonly string[]) => Promise<void>
}

const root = '/v1/edge-mgmt/edgehosts/current'
const tags = ['edgehosts']
const response = { 204: Type.Null(), ...errorReplies(400, 401, 403, 409, 500, 503, 507) }
const config = (name: string) =>
  ({
    access: 'admin',
    audit: {
      action: 'update',
      kind: 'host',
      resource: () => ({ name }),
      changes: 'the record has the value of before and the new one',
    },
  }) as const

/** Name and time servers of a host without a cluster. */
export const setupRoutes: FastifyPluginAsyncTypebox<SetupRoutesOptions> = async (app, options) => {
  const { hostName, readTime, setName, setServers } = options

  app.get(
    `${root}/hostname`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getHostName',
        tags,
        summary: 'The name of this host',
        response: { 200: HostName, ...errorReplies(401, 403) },
      },
    },
    async () => ({ hostName: hostName() }),
  )

  app.put(
    `${root}/hostname`,
    {
      config: config('host name'),
      schema: {
        operationId: 'setHostName',
        tags,
        summary: 'Give this host another name',
        description:
          'For a host without a cluster, whose node keeps its name. It is in /etc/hostname and /etc/hosts when the reply comes; a new certificate with it follows in a moment.',
        body: HostNameRequest,
        response,
      },
    },
    async (request, reply) => {
      const { hostName: name } = request.body
      const problem = problemOfHostName(name)
      if (problem !== undefined) throw refusedField('hostName', `${JSON.stringify(name)} ${problem}`)
      request.auditNote = `the name of the host is ${name}, before ${hostName()}`
      await setName(name)
      return reply.code(204).send(null)
    },
  )

  app.get(
    `${root}/time`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getHostTime',
        tags,
        summary: 'The time servers that were set for this host, and the service that takes them',
        response: { 200: HostTime, ...errorReplies(401, 403, 500) },
      },
    },
    async () => readTime(),
  )

  app.put(
    `${root}/time`,
    {
      config: config('time servers'),
      schema: {
        operationId: 'setHostTime',
        tags,
        summary: 'Give this host its time servers',
        description:
          'For a host without a cluster; with one they are a setting of it. systemd-timesyncd uses them instead of others, chrony before others. Files of an administrator stay.',
        body: HostTimeRequest,
        response,
      },
    },
    async (request, reply) => {
      const servers = readEntries(request.body.ntpServers, 'ntpServers', mostServers, problemOfServer)
      const { ntpServers: before } = await readTime()
      const called = (all: readonly string[]) => all.join(', ') || 'none'
      request.auditNote = `the time servers of the host are ${called(servers)}, before ${called(before)}`
      await setServers(servers)
      return reply.code(204).send(null)
    },
  )
}
