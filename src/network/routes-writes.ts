import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { callerOf } from '../api/guard.ts'
import { errorReplies } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { ChangeSet } from './change-set.ts'
import { networkErrors } from './codes.ts'
import type { LinkKind } from './links/kernel.ts'
import type { Link } from './links/links.ts'
import type { Planner, Prepared } from './planner.ts'
import { requireInterfaceName } from './routes.ts'
import {
  BondRequest,
  BridgeRequest,
  NetworkChangeAccepted,
  NetworkDryRun,
  NicRequest,
  VlanRequest,
} from './schemas.ts'
import { cameBy } from './trial/routes-changes.ts'
import type { Trials } from './trial/trials.ts'
import { readBond, readBridge, readNic, readVlan, type Problem, type Read } from './wanted.ts'

export interface NetworkWritesOptions {
  readonly read: () => Promise<{ readonly links: readonly Link[] }>
  readonly planner: Planner
  readonly trials: Pick<Trials, 'start'>
  readonly shortestWindowSeconds: number
}

const root = '/v1/edge-mgmt/network'
const longestWindowSeconds = 600
/** A client connects anew within it. */
const staticWindowSeconds = 60
/** ifup alone waits 62 s for a server that is not there. */
const dhcpWindowSeconds = 120

const Query = Type.Object({
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Only say what speaks against the change, and what it would do.' }),
  ),
  window: Type.Optional(
    Type.Integer({
      minimum: 5,
      maximum: longestWindowSeconds,
      description: `Seconds until the change is taken back unless it is confirmed: 30 to ${longestWindowSeconds}, or from network.shortestWindowSeconds of the configuration on. Without it ${staticWindowSeconds}, and ${dhcpWindowSeconds} where an address comes by DHCP.`,
    }),
  ),
  dropAddress: Type.Optional(
    Type.Boolean({ description: 'Addresses of members go that the change does not take over.' }),
  ),
})
interface Query {
  dryRun?: boolean
  window?: number
  dropAddress?: boolean
}

const params = Type.Object({ name: Type.String({ description: 'Name of the link.' }) })

const description =
  'The change is tried: it is taken back after the window, whatever happens to the host, unless POST …/network/changes/{uid}/actions/confirm keeps it. Location names the change. With dryRun the reply is 200 with all problems.'

/** Time until a change is taken back. @throws AppError BadRequest for a shorter one than the configuration allows */
export function windowOf(
  change: Pick<ChangeSet, 'after'>,
  asked: number | undefined,
  shortest: number,
): number {
  if (asked !== undefined && asked < shortest)
    throw refusedField(
      'window',
      `is ${asked}: it has to be ${shortest} to ${longestWindowSeconds} seconds; network.shortestWindowSeconds of the configuration sets the least`,
    )
  const isByDhcp = change.after.expected.some(
    ({ addresses }) => !addresses.some((address) => address.includes('.')),
  )
  return asked ?? Math.max(shortest, isByDhcp ? dhcpWindowSeconds : staticWindowSeconds)
}

/** Changes of the links of this host: `/v1/edge-mgmt/network/…`. Each is a trial. */
export const networkWriteRoutes: FastifyPluginAsyncTypebox<NetworkWritesOptions> = async (app, options) => {
  const { read, planner, trials, shortestWindowSeconds } = options

  /** Judges a change, and begins it unless it is only a dry run. */
  async function answer(
    request: FastifyRequest<{ Params: { name: string }; Querystring: Query }>,
    reply: FastifyReply,
    body: Read,
  ): Promise<NetworkDryRun | NetworkChangeAccepted> {
    const { name } = request.params
    const { dryRun = false, window, dropAddress = false } = request.query
    requireInterfaceName(name)
    request.auditResource = { name }
    if (dryRun) {
      request.auditNote = 'dry run, nothing is changed'
      const judged = await judge(planner.prepare(body, dropAddress))
      const { change } = judged
      if (change !== undefined) windowOf(change, window, shortestWindowSeconds)
      void reply.code(200)
      return {
        problems: judged.problems.map((each) => ({ ...each })),
        warnings: [...judged.warnings],
        lostRoutes: [...judged.lostRoutes],
        reachableBy: [...judged.reachableBy],
        ...(change === undefined ? {} : { summary: change.summary }),
      }
    }
    const { change, warnings } = await planner.prepare(body, dropAddress)
    void reply.code(202)
    if (change === undefined) return { message: `${name} is configured so already; nothing is changed` }
    const windowSeconds = windowOf(change, window, shortestWindowSeconds)
    request.auditNote = change.summary
    const { uid } = await trials.start(change, {
      windowSeconds,
      requestedBy: callerOf(request).userName,
      cameBy: cameBy(request),
    })
    void reply.header('location', `${root}/changes/${uid}`)
    return {
      message: [
        `${change.summary}: it is taken back in ${windowSeconds} seconds unless it is confirmed`,
        ...warnings,
      ].join('; '),
      uid,
    }
  }

  const config = (action: 'create' | 'update' | 'delete') =>
    ({
      access: 'admin',
      audit: {
        action,
        kind: 'network',
        resource: ({ params: of }: FastifyRequest) => ({ name: nameOf((of as { name?: string }).name) }),
        changes: 'the record has the summary of the change; how it ends is another record',
      },
    }) as const
  const schema = (operationId: string, summary: string) => ({
    operationId,
    tags: ['network'],
    summary,
    description,
    params,
    querystring: Query,
  })
  const response = {
    200: NetworkDryRun,
    202: NetworkChangeAccepted,
    ...errorReplies(400, 401, 403, 404, 409, 429, 500, 503, 507),
  }

  async function find(name: string): Promise<Link | undefined> {
    requireInterfaceName(name)
    return (await read()).links.find((link) => link.name === name)
  }
  async function requireNew(name: string): Promise<void> {
    if (await find(name))
      throw new AppError(networkErrors.NetworkLinkExists, `this host has a link ${name} already`, {
        details: { name },
      })
  }
  async function requireKind(name: string, kind: LinkKind, called: string): Promise<void> {
    const link = await find(name)
    if (link?.kind !== kind) throw new AppError(generalErrors.NotFound, `this host has no ${called} ${name}`)
  }

  app.put(
    `${root}/interfaces/:name/config`,
    {
      config: config('update'),
      schema: {
        ...schema('updateNetworkInterface', 'Configure a NIC or Wi-Fi interface'),
        body: NicRequest,
        response,
      },
    },
    async (request, reply) => answer(request, reply, readNic(request.params.name, request.body)),
  )

  app.put(
    `${root}/bonds/:name`,
    {
      config: config('update'),
      schema: { ...schema('putBond', 'Make or replace a bond'), body: BondRequest, response },
    },
    async (request, reply) => answer(request, reply, readBond(request.params.name, request.body)),
  )
  app.post(
    `${root}/bonds/:name`,
    {
      config: config('create'),
      schema: { ...schema('createBond', 'Make a bond'), body: BondRequest, response },
    },
    async (request, reply) => {
      await requireNew(request.params.name)
      return answer(request, reply, readBond(request.params.name, request.body))
    },
  )
  app.put(
    `${root}/vlans/:name`,
    {
      config: config('update'),
      schema: { ...schema('putVlan', 'Make or replace a VLAN'), body: VlanRequest, response },
    },
    async (request, reply) => answer(request, reply, readVlan(request.params.name, request.body)),
  )
  app.post(
    `${root}/vlans/:name`,
    {
      config: config('create'),
      schema: { ...schema('createVlan', 'Make a VLAN'), body: VlanRequest, response },
    },
    async (request, reply) => {
      await requireNew(request.params.name)
      return answer(request, reply, readVlan(request.params.name, request.body))
    },
  )
  app.put(
    `${root}/bridges/:name`,
    {
      config: config('update'),
      schema: { ...schema('putBridge', 'Make or replace a bridge'), body: BridgeRequest, response },
    },
    async (request, reply) => answer(request, reply, readBridge(request.params.name, request.body)),
  )
  app.post(
    `${root}/bridges/:name`,
    {
      config: config('create'),
      schema: { ...schema('createBridge', 'Make a bridge'), body: BridgeRequest, response },
    },
    async (request, reply) => {
      await requireNew(request.params.name)
      return answer(request, reply, readBridge(request.params.name, request.body))
    },
  )

  for (const [kind, operationId, called] of [
    ['bond', 'deleteBond', 'bond'],
    ['vlan', 'deleteVlan', 'VLAN'],
    ['bridge', 'deleteBridge', 'bridge'],
  ] as const)
    app.delete(
      `${root}/${kind}s/:name`,
      {
        config: config('delete'),
        schema: { ...schema(operationId, `Delete a ${called}`), response },
      },
      async (request, reply) => {
        const { name } = request.params
        await requireKind(name, kind, called)
        return answer(request, reply, { wanted: { kind: 'delete', of: kind, name } })
      },
    )
}

/** Other text, perhaps a token, must not be written to the trail. */
const nameOf = (text: string | undefined) => (text !== undefined && /^[\w.-]{1,15}$/.test(text) ? text : '')

interface Judged extends Omit<Prepared, 'change'> {
  readonly problems: readonly Problem[]
  readonly change?: ChangeSet
}

/** Problems are the answer of a dry run, and no refusal. */
async function judge(prepared: Promise<Prepared>): Promise<Judged> {
  try {
    return { problems: [], ...(await prepared) }
  } catch (error) {
    const problems = error instanceof AppError ? error.details?.problems : undefined
    if (problems === undefined) throw error
    return { problems: problems as readonly Problem[], warnings: [], lostRoutes: [], reachableBy: [] }
  }
}
