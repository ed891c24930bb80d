import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { NetworkReading } from './links/links.ts'
import type { Management } from './management.ts'
import { ManagementInterface, ManagementRequest } from './schemas.ts'
import { trialErrors } from './trial/codes.ts'
import type { Trials } from './trial/trials.ts'
import { managementOf } from './wire.ts'

export interface ManagementRoutesOptions {
  /** Reads the network now. @throws AppError NetworkUnreadable */
  readonly read: () => Promise<NetworkReading>
  readonly management: Management
  readonly trials: Pick<Trials, 'open'>
  /** Called after another link was chosen; the rooms that speak by it have heard of it when the promise resolves. */
  readonly onChoice: () => Promise<void>
}

const path = '/v1/edge-mgmt/network/management-interface'
const tags = ['network']

/** The management interface of this host. */
export const managementRoutes: FastifyPluginAsyncTypebox<ManagementRoutesOptions> = async (app, options) => {
  const { read, management, trials, onChoice } = options

  app.get(
    path,
    {
      config: { access: 'viewer', writable: () => management.name() },
      schema: {
        operationId: 'getManagementInterface',
        tags,
        summary: 'Show the link for the service API, peers and content, and those that may be chosen',
        response: { 200: ManagementInterface, ...errorReplies(401, 403, 500) },
      },
    },
    async () => managementOf((await read()).links, management.name()),
  )

  app.put(
    path,
    {
      config: {
        access: 'admin',
        writable: () => management.name(),
        audit: {
          action: 'update',
          kind: 'network',
          resource: () => ({ name: 'management interface' }),
          changes: 'the record has the link that was chosen, and the one before',
        },
      },
      schema: {
        operationId: 'setManagementInterface',
        tags,
        summary: 'Choose the link by which the service API, peers and content speak',
        description:
          'It changes no route. An empty name takes the choice back: it is then the link of the default route. The choice goes along with its address when a change of the network moves that to another link and is confirmed.',
        body: ManagementRequest,
        response: { 204: Type.Null(), ...errorReplies(400, 401, 403, 429, 500, 507) },
      },
    },
    async (request, reply) => {
      const { name } = request.body
      const { links } = await read()
      const open = trials.open()
      if (open !== undefined)
        throw new AppError(
          trialErrors.NetworkChangeOpen,
          `the change ${open.uid} of the network is being tried, which may move the address; confirm it or take it back first`,
          { details: { uid: open.uid } },
        )
      // Another choice may have come while the links were read.
      request.requireMatch()
      const before = management.name()
      const { candidates } = managementOf(links, before)
      if (name !== '' && !candidates.some((each) => each.name === name))
        throw refusedField(
          'name',
          `${JSON.stringify(name)} is none of the links that may be chosen: ${candidates.map((each) => each.name).join(', ') || 'none has an address'}; empty: the link of the default route`,
        )
      request.auditNote = `the management interface is ${called(name)}, before ${called(before)}`
      management.choose(name, links)
      await onChoice()
      return reply.code(204).send(null)
    },
  )
}

const called = (name: string) => (name === '' ? 'that of the default route' : name)
