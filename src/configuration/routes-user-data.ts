import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../api/guard.ts'
import { whenSent } from '../api/request-end.ts'
import { errorReplies, NoContent } from '../api/schemas.ts'
import { cameBy } from '../network/trial/routes-changes.ts'
import { CloudInit, UserData, UserDataCreated } from './schemas.ts'
import type { UserDataPart } from './user-data.ts'

interface UserDataRoutesOptions {
  readonly userData: UserDataPart
  /** Starts the daemon anew, soon. */
  readonly restart: () => void
}

const path = '/v1/edge-mgmt/edgehosts/current/userdata'
const tags = ['configuration']
const changesPath = '/v1/edge-mgmt/network/changes'

const description =
  'Applied at once, by the parts of the host that have it. A section that is absent stays as it is; network replaces proxies and authorities. What cannot be applied is refused with its path, and nothing is done. A change of interfaces is a trial, which Location names: confirm it. A link to a platform is checked before, and edgehostd starts anew after the reply. Refused on a host with a cluster.'

/** User data of this host: `/v1/edge-mgmt/edgehosts/current/userdata`. */
export const userDataRoutes: FastifyPluginAsyncTypebox<UserDataRoutesOptions> = async (
  app,
  { userData, restart },
) => {
  async function apply(
    request: FastifyRequest<{ Body: CloudInit }>,
    reply: FastifyReply,
    isNew: boolean,
  ): Promise<string> {
    const { userName: requestedBy } = callerOf(request)
    const { uid, change, needsRestart } = await userData.apply(request.body, isNew, {
      requestedBy,
      cameBy: cameBy(request),
    })
    request.auditResource = { uid }
    request.auditNote = Object.keys(request.body).sort().join(', ') || 'nothing'
    if (needsRestart) whenSent(reply, restart)
    if (change !== undefined) void reply.header('location', `${changesPath}/${change}`)
    return uid
  }
  const audit = (action: 'create' | 'update') =>
    ({
      access: 'admin',
      audit: {
        action,
        kind: 'userData',
        changes: 'the record names its sections; their parts have records of their own',
      },
    }) as const

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getUserData',
        tags,
        summary: 'User data of this host, as it is in force',
        response: { 200: UserData, ...errorReplies(401, 503) },
      },
    },
    async () => userData.show(),
  )

  app.post(
    path,
    {
      config: audit('create'),
      schema: {
        operationId: 'createUserData',
        tags,
        summary: 'Give a host without a cluster its user data, for administrators',
        description,
        body: CloudInit,
        response: { 201: UserDataCreated, ...errorReplies(400, 401, 403, 409, 429, 500, 503, 507) },
      },
    },
    async (request, reply) => {
      const uid = await apply(request, reply, true)
      return reply.code(201).send({ uid })
    },
  )

  app.put(
    path,
    {
      config: audit('update'),
      schema: {
        operationId: 'updateUserData',
        tags,
        summary: 'Replace the user data of a host without a cluster, for administrators',
        description,
        body: CloudInit,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 409, 429, 500, 503, 507) },
      },
    },
    async (request, reply) => {
      await apply(request, reply, false)
      return reply.code(204).send(null)
    },
  )
}
