import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type, type Static, type TSchema } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import { kindNames, type LinkKind } from './links/kernel.ts'
import type { Link } from './links/links.ts'
import { linkTag } from './link-tag.ts'
import {
  Bond,
  BondList,
  bondOptions,
  Bridge,
  BridgeList,
  NetworkConfigOptions,
  NicSummary,
  NicSummaryList,
  Vlan,
  VlanList,
} from './schemas.ts'
import { toBond, toBridge, toNic, toVlan, type Shown } from './wire.ts'

export interface NetworkRoutesOptions {
  /** Reads the network now. @throws AppError NetworkUnreadable */
  readonly read: () => Promise<{ readonly links: readonly Link[]; readonly problems: readonly string[] }>
  readonly shown: () => Shown
}

/** Links of some kinds, at an endpoint of their own. */
interface Served<One extends TSchema> {
  readonly path: string
  readonly kinds: readonly LinkKind[]
  /** In messages. */
  readonly called: string
  /** The field of the list. */
  readonly items: 'interfaces' | 'items'
  readonly list: {
    readonly operationId: string
    readonly summary: string
    readonly description?: string
    readonly reply: TSchema
  }
  readonly one: { readonly operationId: string; readonly summary: string; readonly reply: One }
  readonly show: (link: Link, all: readonly Link[], shown: Shown) => Static<One>
}

const root = '/v1/edge-mgmt/network'

/** A name that the kernel gives an interface (net/core/dev.c, dev_valid_name); 15 bytes, IFNAMSIZ. */
const isInterfaceName = (name: string): boolean =>
  Buffer.byteLength(name) <= 15 && !/[\s/:]/.test(name) && !['', '.', '..'].includes(name)

/**
 * Refuses a name that no interface can have.
 * @throws AppError BadRequest, 400
 */
export function requireInterfaceName(name: string): void {
  if (!isInterfaceName(name))
    throw refusedField(
      'name',
      `${JSON.stringify(name)} is no name of an interface: 1 to 15 characters without blanks, / and :`,
    )
}

/** Network of this host, as it is: `/v1/edge-mgmt/network`. */
export const networkRoutes: FastifyPluginAsyncTypebox<NetworkRoutesOptions> = async (app, options) => {
  const { read, shown } = options
  const readList = async (kinds: readonly LinkKind[]) => {
    const { links, problems } = await read()
    return {
      all: links,
      found: links.filter(({ kind }) => kinds.includes(kind)),
      ...(problems.length > 0 ? { problems: [...problems] } : {}),
    }
  }
  const readOne = async (name: string, kinds: readonly LinkKind[], called: string) => {
    requireInterfaceName(name)
    const { all, found } = await readList(kinds)
    const link = found.find((each) => each.name === name)
    if (link !== undefined) return { link, all }
    const other = all.find((each) => each.name === name)
    throw new AppError(
      generalErrors.NotFound,
      other === undefined
        ? `this host has no ${called} ${name}; edgehostctl network list shows all links`
        : `${name} is a ${kindNames[other.kind]}; see network/${pathOf[other.kind]}/${name}`,
    )
  }
  const access = { access: 'viewer' } as const
  const errors = errorReplies(401, 403, 500)
  const ofOne = errorReplies(400, 401, 403, 404, 500)
  const params = Type.Object({ name: Type.String({ description: 'Name of the link.' }) })
  const whole = 'All of them, without listmeta, as the kernel and its files have them at the moment.'
  const describe = (operationId: string, summary: string) => ({ operationId, tags: ['network'], summary })

  /** The list of the links of some kinds, and each of them. */
  function serve<One extends TSchema>({ path, kinds, called, items, list, one, show }: Served<One>): void {
    app.get(
      `${root}/${path}`,
      {
        config: access,
        schema: {
          ...describe(list.operationId, list.summary),
          description: list.description ?? whole,
          response: { 200: list.reply, ...errors },
        },
      },
      async () => {
        const { all, found, problems } = await readList(kinds)
        return {
          [items]: found.map((link) => show(link, all, shown())),
          ...(problems ? { problems } : {}),
        }
      },
    )
    const reply: TSchema = one.reply
    app.get(
      `${root}/${path}/:name`,
      {
        config: { ...access, hasEtag: true },
        schema: {
          ...describe(one.operationId, one.summary),
          description:
            'The ETag is of what a request may write, as it is configured; send it in If-Match with a change, so that it is refused if another one came between.',
          params,
          response: { 200: reply, ...ofOne },
        },
      },
      async ({ params: { name } }, response) => {
        const { link, all } = await readOne(name, kinds, called)
        void response.header('etag', linkTag(link, all))
        return show(link, all, shown())
      },
    )
  }

  serve({
    path: 'interfaces',
    kinds: ['nic', 'wifi'],
    called: 'interface',
    items: 'interfaces',
    list: {
      operationId: 'listNetworkInterfaces',
      summary: 'List the NICs and Wi-Fi interfaces of this host: what runs, what is configured, and by whom',
      description:
        'As the kernel and the files of its owner have them at the moment. Interfaces of pods, containers and virtual machines are left out.',
      reply: NicSummaryList,
    },
    one: {
      operationId: 'getNetworkInterface',
      summary: 'Show a NIC or Wi-Fi interface',
      reply: NicSummary,
    },
    show: toNic,
  })
  serve({
    path: 'bonds',
    kinds: ['bond'],
    called: 'bond',
    items: 'items',
    list: { operationId: 'listBonds', summary: 'List the bonds of this host', reply: BondList },
    one: { operationId: 'getBond', summary: 'Show a bond', reply: Bond },
    show: toBond,
  })
  serve({
    path: 'vlans',
    kinds: ['vlan'],
    called: 'VLAN',
    items: 'items',
    list: { operationId: 'listVlans', summary: 'List the VLANs of this host', reply: VlanList },
    one: { operationId: 'getVlan', summary: 'Show a VLAN', reply: Vlan },
    show: toVlan,
  })
  serve({
    path: 'bridges',
    kinds: ['bridge'],
    called: 'bridge',
    items: 'items',
    list: {
      operationId: 'listBridges',
      summary: 'List the configured bridges of this host',
      reply: BridgeList,
    },
    one: { operationId: 'getBridge', summary: 'Show a configured bridge', reply: Bridge },
    show: toBridge,
  })
  app.get(
    `${root}/config-options`,
    {
      config: access,
      schema: {
        ...describe('getNetworkConfigOptions', 'List the values of the options of a bond'),
        response: { 200: NetworkConfigOptions, ...errorReplies(401, 403) },
      },
    },
    async () => ({
      bond: {
        mode: [...bondOptions.mode],
        lacpTransmitRate: [...bondOptions.lacpTransmitRate],
        transmitHashPolicy: [...bondOptions.transmitHashPolicy],
      },
    }),
  )
}

const pathOf: Readonly<Record<LinkKind, string>> = {
  nic: 'interfaces',
  wifi: 'interfaces',
  bond: 'bonds',
  vlan: 'vlans',
  bridge: 'bridges',
}
