import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static, type TSchema } from 'typebox'
import { callerOf } from '../api/guard.ts'
import { errorReplies } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import type { Busy, BusyReason } from '../root/room.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import { isByDhcp, type ChangeSet } from './change-set.ts'
import { networkErrors } from './codes.ts'
import { kindNames, type LinkKind } from './links/kernel.ts'
import type { Link, NetworkReading } from './links/links.ts'
import type { Planner } from './planner.ts'
import { linkTag, requireLinkTag } from './link-tag.ts'
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
  readonly read: () => Promise<NetworkReading>
  readonly planner: Planner
  readonly trials: Pick<Trials, 'start' | 'lastEnded' | 'requireNone'>
  readonly busy: Busy
  readonly isPlatformConnected: () => boolean
  readonly shortestWindowSeconds: number
}

/** The network of this host, and the change after which it was read. */
interface Seen {
  readonly network: NetworkReading
  readonly plannedAfter: string | undefined
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
  confirm: Type.Optional(
    Type.Enum(['platform'], {
      description:
        'platform: the next heartbeat of this host to its platform, on a connection that is made after the apply, keeps the change; on connected hosts. A request may keep it too.',
    }),
  ),
  dropAddress: Type.Optional(
    Type.Boolean({ description: 'Addresses of members go that the change does not take over.' }),
  ),
})
interface Query {
  dryRun?: boolean
  window?: number
  confirm?: 'platform'
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
  const usual = change.after.expected.some(isByDhcp) ? dhcpWindowSeconds : staticWindowSeconds
  return asked ?? Math.max(shortest, usual)
}

/** Changes of the links of this host: `/v1/edge-mgmt/network/…`. Each is a trial. */
export const networkWriteRoutes: FastifyPluginAsyncTypebox<NetworkWritesOptions> = async (app, options) => {
  const { read, planner, trials, busy, isPlatformConnected, shortestWindowSeconds } = options

  /**
   * Judges a change, and begins it unless it is only a dry run.
   * @param seen the network as it is, where the route has read it for a check of its own
   */
  async function answer(
    request: FastifyRequest<{ Params: { name: string }; Querystring: Query }>,
    reply: FastifyReply,
    body: Read,
    seen?: Seen,
  ): Promise<NetworkDryRun | NetworkChangeAccepted> {
    const { name } = request.params
    const { dryRun = false, window, confirm, dropAddress = false } = request.query
    requireInterfaceName(name)
    request.auditResource = { name }
    if (confirm === 'platform' && !isPlatformConnected())
      throw refusedField(
        'confirm',
        'is platform, and this host is not connected to one: see edgehostctl platform status, or leave it out',
      )
    if (dryRun) request.auditNote = 'dry run, nothing is changed'
    // What is configured now may be that of the trial.
    else trials.requireNone()
    const found = seen ?? ('wanted' in body ? await see() : undefined)
    const reading = found?.network
    if (reading !== undefined) {
      const present = reading.links.find((link) => link.name === name)
      requireLinkTag(request.headers['if-match'], name, present, reading.links)
      // Of the state that is judged: the write that follows may ask for it.
      if (present !== undefined) void reply.header('etag', linkTag(present, reading.links))
    }
    const { change, problems, warnings, lostRoutes, reachableBy, changesWayOut } = await planner.prepare(
      body,
      dropAddress,
      reading,
    )
    if (dryRun) {
      if (change !== undefined) windowOf(change, window, shortestWindowSeconds)
      void reply.code(200)
      return {
        problems: problems.map((each) => ({ ...each })),
        warnings: [
          ...warnings,
          ...busy.reasons().map(({ message }) => `refused as long as this host is busy: ${message}`),
        ],
        lostRoutes: [...lostRoutes],
        reachableBy: [...reachableBy],
        ...(change === undefined ? {} : { summary: change.summary }),
      }
    }
    if (problems.length > 0) throw refusalOf(problems)
    void reply.code(202)
    if (change === undefined) return { message: `${name} is configured so already; nothing is changed` }
    const windowSeconds = windowOf(change, window, shortestWindowSeconds)
    request.auditNote = change.summary
    const { uid } = await trials.start(change, {
      windowSeconds,
      requestedBy: callerOf(request).userName,
      cameBy: cameBy(request),
      changesWayOut,
      confirmBy: confirm,
      plannedAfter: found?.plannedAfter,
      refuseBusy: () => busy.refuse('a change of the network', isOtherThanTrial),
    })
    void reply.header('location', `${root}/changes/${uid}`)
    return {
      message: [
        `${change.summary}: it is taken back in ${windowSeconds} seconds unless it is confirmed${confirm === undefined ? '' : ', which the next heartbeat to the platform does'}`,
        ...warnings,
      ].join('; '),
      uid,
    }
  }

  const config = (action: 'create' | 'update' | 'delete') =>
    ({
      access: 'admin',
      ...(action === 'create' ? {} : { hasEtag: true as const }),
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

  async function see(): Promise<Seen> {
    const plannedAfter = trials.lastEnded()
    return { plannedAfter, network: await read() }
  }
  async function find(name: string): Promise<{ seen: Seen; link: Link | undefined }> {
    requireInterfaceName(name)
    const seen = await see()
    return { seen, link: seen.network.links.find((link) => link.name === name) }
  }
  async function requireNew(name: string): Promise<Seen> {
    const { seen, link } = await find(name)
    if (link)
      throw new AppError(networkErrors.NetworkLinkExists, `this host has a link ${name} already`, {
        details: { name },
      })
    return seen
  }
  async function requireKind(name: string, kind: LinkKind): Promise<Seen> {
    const { seen, link } = await find(name)
    if (link?.kind !== kind)
      throw new AppError(generalErrors.NotFound, `this host has no ${kindNames[kind]} ${name}`)
    return seen
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

  /** A bond, VLAN or bridge is made, replaced and deleted. */
  function serve<Body extends TSchema>({
    kind,
    operationIds: [put, create, remove],
    body,
    readBody,
  }: Made<Body>) {
    const called = kindNames[kind]
    const path = `${root}/${kind}s/:name`
    const schemaOfBody: TSchema = body
    const readIn = ({ params: { name }, body: sent }: { params: { name: string }; body: unknown }) =>
      readBody(name, sent as Static<Body>)
    app.put(
      path,
      {
        config: config('update'),
        schema: { ...schema(put, `Make or replace a ${called}`), body: schemaOfBody, response },
      },
      async (request, reply) => answer(request, reply, readIn(request)),
    )
    app.post(
      path,
      {
        config: config('create'),
        schema: { ...schema(create, `Make a ${called}`), body: schemaOfBody, response },
      },
      async (request, reply) => {
        const seen = await requireNew(request.params.name)
        return answer(request, reply, readIn(request), seen)
      },
    )
    app.delete(
      path,
      { config: config('delete'), schema: { ...schema(remove, `Delete a ${called}`), response } },
      async (request, reply) => {
        const { name } = request.params
        const seen = await requireKind(name, kind)
        return answer(request, reply, { wanted: { kind: 'delete', of: kind, name } }, seen)
      },
    )
  }
  serve({
    kind: 'bond',
    operationIds: ['putBond', 'createBond', 'deleteBond'],
    body: BondRequest,
    readBody: readBond,
  })
  serve({
    kind: 'vlan',
    operationIds: ['putVlan', 'createVlan', 'deleteVlan'],
    body: VlanRequest,
    readBody: readVlan,
  })
  serve({
    kind: 'bridge',
    operationIds: ['putBridge', 'createBridge', 'deleteBridge'],
    body: BridgeRequest,
    readBody: readBridge,
  })
}

/** An open change refuses another one by itself, with its uid. */
export const isOtherThanTrial = ({ reason }: BusyReason) => reason !== 'NetworkChange'

/** A kind of links that is made by request. */
interface Made<Body extends TSchema> {
  readonly kind: 'bond' | 'vlan' | 'bridge'
  readonly operationIds: readonly [put: string, create: string, remove: string]
  readonly body: Body
  readonly readBody: (name: string, body: Static<Body>) => Read
}

/** Other text, perhaps a token, must not be written to the trail. */
const nameOf = (text: string | undefined) => (text !== undefined && /^[\w.-]{1,15}$/.test(text) ? text : '')

/** All problems in one refusal; the message is the first of them. */
function refusalOf(problems: readonly Problem[]): AppError {
  const [first, ...more] = problems
  const others = more.length === 0 ? '' : `; and ${more.length} more, see details.problems`
  return new AppError(generalErrors.BadRequest, `${first?.field} ${first?.reason}${others}`, {
    details: { field: first?.field, problems },
  })
}
