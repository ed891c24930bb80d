import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { Type } from 'typebox'
import { errorReplies } from '../../api/schemas.ts'
import { formatTime } from '../../base/time.ts'
import { Uid } from '../../base/uid.ts'
import { NetworkChange } from '../schemas.ts'
import type { StoredChange } from './store.ts'
import type { Trials } from './trials.ts'
import type { CameBy } from './way.ts'

export interface ChangeRoutesOptions {
  readonly trials: Trials
  /** When a connection was accepted, monotonic milliseconds. */
  readonly acceptedAt: (socket: Socket) => number | undefined
}

const path = '/v1/edge-mgmt/network/changes'
const tags = ['network']

/** The addresses between which a request has come. */
export const cameBy = (request: FastifyRequest): CameBy => ({
  isLocal: request.peer.isLocal,
  hostAddress: request.socket.localAddress,
  clientAddress: request.socket.remoteAddress,
})

/** Changes of the network of this host, and what decides about them: `/v1/edge-mgmt/network/changes…`. */
export const changeRoutes: FastifyPluginAsyncTypebox<ChangeRoutesOptions> = async (app, options) => {
  const { trials, acceptedAt } = options

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listNetworkChanges',
        tags,
        summary: 'List the last changes of the network, the newest first',
        description: 'The newest first, all of them, without listmeta.',
        response: {
          200: Type.Object({ items: Type.Array(NetworkChange) }),
          ...errorReplies(401, 403),
        },
      },
    },
    async () => ({ items: trials.list().map(changeView) }),
  )

  app.get(
    `${path}/:uid`,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getNetworkChange',
        tags,
        summary: 'A change of the network',
        params: Type.Object({ uid: Uid }),
        response: { 200: NetworkChange, ...errorReplies(400, 401, 403, 404) },
      },
    },
    async ({ params: { uid } }) => changeView(trials.find(uid)),
  )

  for (const [action, operationId, summary, description] of [
    [
      'confirm',
      'confirmNetworkChange',
      'Keep a change of the network that is being tried',
      'Where the change touches the way by which it was asked for, this request has to come on a TLS connection that was accepted after appliedTimestamp, to an address that the host has now; elsewhere on any new connection. Where gateway or name servers change and the platform answered before, it has to be heard first (409 NetworkPlatformUnheard). Requests on the local socket of root may always confirm. The change is on the disk before the reply.',
    ],
    [
      'revert',
      'revertNetworkChange',
      'Take a change of the network back that is being tried',
      'The state is reverting in the reply, and reverted a moment later. The reply may not arrive where the change is needed for it.',
    ],
  ] as const)
    app.post(
      `${path}/:uid/actions/${action}`,
      {
        config: {
          access: 'admin',
          servedInReset: true,
          audit: {
            action: 'action',
            kind: 'network',
            resource: ({ params }) => ({ uid: (params as { uid?: string }).uid }),
            changes: 'the record names the change; its end is another record',
          },
        },
        schema: {
          operationId,
          tags,
          summary,
          description,
          params: Type.Object({ uid: Uid }),
          response: { 200: NetworkChange, ...errorReplies(400, 401, 403, 404, 409, 503, 507) },
        },
      },
      async (request) => {
        const { uid } = request.params
        request.auditResource = { uid, name: trials.find(uid).summary }
        return changeView(
          action === 'confirm'
            ? await trials.confirm(uid, { ...cameBy(request), acceptedAt: acceptedAt(request.socket) })
            : await trials.revert(uid),
        )
      },
    )
}

/** A change as the API shows it. */
export function changeView(change: StoredChange): NetworkChange {
  const { reason, message, lost, createdAt, deadlineAt, appliedAt, endedAt } = change
  return {
    uid: change.uid,
    summary: change.summary,
    state: change.state,
    ...(reason === undefined ? {} : { reason }),
    ...(message === '' ? {} : { message }),
    backend: change.backend,
    links: [...change.links],
    ...(lost.length === 0 ? {} : { lost: [...lost] }),
    requestedBy: change.requestedBy,
    needsNewWay: change.needsNewWay,
    ...(change.needsPlatform === undefined ? {} : { needsPlatform: change.needsPlatform }),
    ...(change.confirmBy === undefined ? {} : { confirmBy: change.confirmBy }),
    windowSeconds: change.windowSeconds,
    creationTimestamp: formatTime(createdAt),
    deadlineTimestamp: formatTime(deadlineAt),
    ...(appliedAt === undefined ? {} : { appliedTimestamp: formatTime(appliedAt) }),
    ...(endedAt === undefined ? {} : { endTimestamp: formatTime(endedAt) }),
  }
}
