import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from '../api/guard.ts'
import { whenSent } from '../api/request-end.ts'
import { errorReplies, NoContent } from '../api/schemas.ts'
import { formatTime } from '../base/time.ts'
import { parseWipe, type Reset } from './reset.ts'
import {
  HostActions,
  ResetBody,
  ResetPlan,
  ResetQuery,
  StopAccepted,
  StopPath,
  StopQuery,
  type StopAction,
} from './schemas.ts'
import type { Stops } from './stops.ts'

interface PowerRoutesOptions {
  readonly stops: Pick<Stops, 'accept' | 'go' | 'cancel' | 'show'>
  readonly reset: Pick<Reset, 'plan' | 'accept' | 'show'>
  readonly stateDirectory: string
  /** The reply to a reset has left. */
  readonly onReset: () => void
}

const audit = (action: 'action' | 'delete') =>
  ({ action, kind: 'host', changes: 'a stop of the host is an operation, not a value' }) as const

/** Reboot and shutdown: `/v1/edge-mgmt/edgehosts/current/actions`. */
export const powerRoutes: FastifyPluginAsyncTypebox<PowerRoutesOptions> = async (
  app,
  { stops, reset, stateDirectory, onReset },
) => {
  const path = '/v1/edge-mgmt/edgehosts/current/actions'
  const tags = ['power']

  async function stop(
    request: FastifyRequest,
    reply: FastifyReply,
    action: StopAction,
    { at, force = false, message = '' }: StopQuery,
  ): Promise<StopAccepted> {
    const accepted = await stops.accept({
      action,
      message,
      at,
      isForced: force,
      by: callerOf(request).userName,
    })
    const { uid, plannedAt } = accepted
    request.auditResource = { uid }
    request.auditNote = [
      action,
      ...(plannedAt === null ? [] : [`at ${formatTime(plannedAt)}`]),
      ...(force ? ['forced'] : []),
      ...(message === '' ? [] : [message]),
    ].join(', ')
    void reply.code(202)
    if (plannedAt !== null)
      return {
        uid,
        message: `the host will ${action === 'reboot' ? 'reboot' : 'shut down'} at ${formatTime(plannedAt)}; DELETE ${path}/${uid} cancels it`,
      }
    void reply.header('connection', 'close')
    whenSent(reply, () => void stops.go())
    return {
      uid,
      message:
        action === 'reboot'
          ? 'the host is being rebooted; its sessions end now'
          : 'the host is being shut down; its sessions end now, and it has to be turned on again',
    }
  }

  const described =
    'The reply comes before the host goes. 409 Busy names what it would break off. Pods get the time that their kubelet has for it, or are ended before. With at it is planned, listed by GET and cancelled by DELETE; where the host is busy then, it waits for up to an hour.'
  const response = { 202: StopAccepted, ...errorReplies(400, 401, 403, 409, 507) }

  app.post(
    `${path}/reboot`,
    {
      config: { access: 'admin', servedInReset: true, audit: audit('action') },
      schema: {
        operationId: 'rebootEdgeHost',
        tags,
        summary: 'Reboot this host',
        description: described,
        querystring: StopQuery,
        response,
      },
    },
    (request, reply) => stop(request, reply, 'reboot', request.query),
  )

  app.post(
    `${path}/shutdown`,
    {
      config: { access: 'admin', servedInReset: true, audit: audit('action') },
      schema: {
        operationId: 'shutDownEdgeHost',
        tags,
        summary: 'Turn this host off; it has to be turned on again on site',
        description: described,
        querystring: StopQuery,
        response,
      },
    },
    (request, reply) => stop(request, reply, 'shutdown', request.query),
  )

  app.post(
    `${path}/reset`,
    {
      config: {
        access: 'admin',
        servedInReset: true,
        audit: audit('action'),
      },
      schema: {
        operationId: 'resetEdgeHost',
        tags,
        summary: 'Reset this host: its cluster, content, definitions and sessions go',
        description:
          'Try it with dryRun: the reply lists everything that goes. The body has to have the name of this host. It cannot be cancelled; a restart of edgehostd or a power cut does not end it. Accounts and the audit trail stay. A host that a platform manages is refused without force. GET of the actions shows the phase.',
        querystring: ResetQuery,
        body: ResetBody,
        response: {
          200: ResetPlan,
          202: StopAccepted,
          ...errorReplies(400, 401, 403, 409, 507),
        },
      },
    },
    async (request, reply) => {
      const { dryRun = false, force = false, keep, wipe } = request.query
      const wish = { keepsContent: keep === 'content', wipe: parseWipe(wipe, stateDirectory) }
      if (dryRun) {
        request.auditNote = 'dry run, nothing is changed'
        return reset.plan(wish)
      }
      const uid = await reset.accept({
        ...wish,
        hostName: request.body.hostName,
        isForced: force,
        by: callerOf(request).userName,
      })
      request.auditResource = { uid }
      request.auditNote = [
        'reset',
        ...(keep ? [`keep ${keep}`] : []),
        ...(wipe === undefined ? [] : [`wipe ${wipe}`]),
        ...(force ? ['forced'] : []),
      ].join(', ')
      void reply.code(202).header('connection', 'close').header('location', path)
      whenSent(reply, onReset)
      return { uid, message: `the host is being reset; its sessions end now, GET ${path} shows the phase` }
    },
  )

  app.get(
    path,
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getHostActions',
        tags,
        summary:
          'The stop of this host that is planned or under way, the last one, the last reset, and how the host came back',
        description: 'The list of stops has at most two entries, without listmeta.',
        response: { 200: HostActions, ...errorReplies(401) },
      },
    },
    async () => {
      const last = reset.show()
      return { ...stops.show(), ...(last ? { reset: last } : {}) }
    },
  )

  app.delete(
    `${path}/:uid`,
    {
      config: { access: 'admin', servedInReset: true, audit: audit('delete') },
      schema: {
        operationId: 'cancelHostAction',
        tags,
        summary: 'Cancel a planned reboot or shutdown',
        params: StopPath,
        response: { 204: NoContent, ...errorReplies(400, 401, 403, 404, 409, 507) },
      },
    },
    async (request, reply) => {
      const { uid, action } = stops.cancel(request.params.uid)
      request.auditResource = { uid }
      request.auditNote = `the planned ${action} is cancelled`
      return reply.code(204).send(null)
    },
  )
}
