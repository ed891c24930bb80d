import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type, type TSchema } from 'typebox'
import { errorReplies } from '../api/schemas.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField } from '../errors/refused-field.ts'
import type { LinkKind } from './links/kernel.ts'
import type { Link } from './links/links.ts'
import {
  Bond,
  BondList,
  bondOptions,
  Bridge,
  BridgeList,
  ManagementInterface,
  NetworkConfigOptions,
  NicSummary,
  NicSummaryList,
  Vlan,
  VlanList,
} from './schemas.ts'
import { managementOf, toBond, toBridge, toNic, toVlan, type Shown } from './wire.ts'

export interface NetworkRoutesOptions {
  /** Reads the network now. @throws AppError NetworkUnreadable */
  readonly read: () => Promise<{ readonly links: readonly Link[]; readonly problems: readonly string[] }>
  readonly shown: () => Shown
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
  const describe = (operationId: string, summary: string, reply: TSchema, description?: string) => ({
    operationId,
    tags: ['network'],
    summary,
    ...(description === undefined ? {} : { description }),
    response: { 200: reply },
  })
  const whole = 'All of them, without listmeta, as the kernel and its files have them at the moment.'

  app.get(
    `${root}/interfaces`,
    {
      config: access,
      schema: {
        ...describe(
          'listNetworkInterfaces',
          'List the NICs and Wi-Fi interfaces of this host: what runs, what is configured, and by whom',
          NicSummaryList,
          'As the kernel and the files of its owner have them at the moment. Interfaces of pods, containers and virtual machines are left out.',
        ),
        response: { 200: NicSummaryList, ...errors },
      },
    },
    async () => {
      const { all, found, problems } = await readList(['nic', 'wifi'])
      return { interfaces: found.map((link) => toNic(link, all, shown())), ...(problems ? { problems } : {}) }
    },
  )
  app.get(
    `${root}/interfaces/:name`,
    {
      config: access,
      schema: {
        ...describe('getNetworkInterface', 'Show a NIC or Wi-Fi interface', NicSummary),
        params,
        response: { 200: NicSummary, ...ofOne },
      },
    },
    async ({ params: { name } }) => {
      const { link, all } = await readOne(name, ['nic', 'wifi'], 'interface')
      return toNic(link, all, shown())
    },
  )
  app.get(
    `${root}/bonds`,
    {
      config: access,
      schema: {
        ...describe('listBonds', 'List the bonds of this host', BondList, whole),
        response: { 200: BondList, ...errors },
      },
    },
    async () => {
      const { all, found, problems } = await readList(['bond'])
      return { items: found.map((link) => toBond(link, all, shown())), ...(problems ? { problems } : {}) }
    },
  )
  app.get(
    `${root}/bonds/:name`,
    {
      config: access,
      schema: { ...describe('getBond', 'Show a bond', Bond), params, response: { 200: Bond, ...ofOne } },
    },
    async ({ params: { name } }) => {
      const { link, all } = await readOne(name, ['bond'], 'bond')
      return toBond(link, all, shown())
    },
  )
  app.get(
    `${root}/vlans`,
    {
      config: access,
      schema: {
        ...describe('listVlans', 'List the VLANs of this host', VlanList, whole),
        response: { 200: VlanList, ...errors },
      },
    },
    async () => {
      const { all, found, problems } = await readList(['vlan'])
      return { items: found.map((link) => toVlan(link, all, shown())), ...(problems ? { problems } : {}) }
    },
  )
  app.get(
    `${root}/vlans/:name`,
    {
      config: access,
      schema: { ...describe('getVlan', 'Show a VLAN', Vlan), params, response: { 200: Vlan, ...ofOne } },
    },
    async ({ params: { name } }) => {
      const { link, all } = await readOne(name, ['vlan'], 'VLAN')
      return toVlan(link, all, shown())
    },
  )
  app.get(
    `${root}/bridges`,
    {
      config: access,
      schema: {
        ...describe('listBridges', 'List the configured bridges of this host', BridgeList, whole),
        response: { 200: BridgeList, ...errors },
      },
    },
    async () => {
      const { all, found, problems } = await readList(['bridge'])
      return { items: found.map((link) => toBridge(link, all, shown())), ...(problems ? { problems } : {}) }
    },
  )
  app.get(
    `${root}/bridges/:name`,
    {
      config: access,
      schema: {
        ...describe('getBridge', 'Show a configured bridge', Bridge),
        params,
        response: { 200: Bridge, ...ofOne },
      },
    },
    async ({ params: { name } }) => {
      const { link, all } = await readOne(name, ['bridge'], 'bridge')
      return toBridge(link, all, shown())
    },
  )
  app.get(
    `${root}/config-options`,
    {
      config: access,
      schema: {
        ...describe(
          'getNetworkConfigOptions',
          'List the values of the options of a bond',
          NetworkConfigOptions,
        ),
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
  app.get(
    `${root}/management-interface`,
    {
      config: access,
      schema: {
        ...describe(
          'getManagementInterface',
          'Show the link for the service API, peers and content, and those that may be chosen',
          ManagementInterface,
        ),
        response: { 200: ManagementInterface, ...errors },
      },
    },
    async () => managementOf((await read()).links),
  )
}

const pathOf: Readonly<Record<LinkKind, string>> = {
  nic: 'interfaces',
  wifi: 'interfaces',
  bond: 'bonds',
  vlan: 'vlans',
  bridge: 'bridges',
}

const kindNames: Readonly<Record<LinkKind, string>> = {
  nic: 'NIC',
  wifi: 'Wi-Fi interface',
  bond: 'bond',
  vlan: 'VLAN',
  bridge: 'bridge',
}
