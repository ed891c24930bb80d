// User data: what a host is given once before it has a cluster. It has no state of its own but the tags: each part of it is a thing that another part of the
// daemon has, and is applied there at once. What cannot be applied is refused with its path; nothing is dropped.

import { isIPv4 } from 'node:net'
import { uuidAt } from '../base/uid.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField, refuseRounded } from '../errors/refused-field.ts'
import { dottedMask, parseSubnet } from '../base/subnet.ts'
import type { Clock } from '../system/clock.ts'
import type { Database } from '../store/database.ts'
import { configurationErrors } from './codes.ts'
import type { Configuration } from './configuration.ts'
import type { CloudInit, InterfaceOfUserData, UserData } from './schemas.ts'

/** A change of a link that can be tried. */
export interface JudgedLink {
  readonly problems: readonly { readonly field: string; readonly reason: string }[]
  /** Begins the trial; absent where nothing differs. @returns its uid @throws AppError */
  readonly begin?: () => Promise<string>
}

/** The links of this host, as far as user data names them. */
export interface LinksOfUserData {
  /** The user data in force. @throws AppError */
  show(): Promise<Readonly<Record<string, InterfaceOfUserData>>>
  /** The change that is tried now. */
  open(): { readonly uid: string; readonly summary: string; readonly state: string } | undefined
  /** @param how who asks, and by which way @throws AppError */
  judge(name: string, wanted: LinkWish, how: RequestOfLink): Promise<JudgedLink>
}

/** As `PUT /network/interfaces/{name}/config` takes it. */
export interface LinkWish {
  readonly type: 'static' | 'dhcp'
  readonly ip?: string
  readonly subnet?: string
  readonly gateway?: string
  readonly nameservers?: string[]
}

/** Who asks for a change of a link, and between which addresses. */
export interface RequestOfLink {
  readonly requestedBy: string
  readonly cameBy: {
    readonly isLocal: boolean
    readonly hostAddress: string | undefined
    readonly clientAddress: string | undefined
  }
}

export interface UserDataOptions {
  readonly database: Pick<Database, 'sql'>
  readonly configuration: Pick<Configuration, 'show' | 'plan' | 'put'>
  readonly links: LinksOfUserData
  readonly hasCluster: () => boolean
  readonly hostName: () => string
  /** The name of the host: its rules, and another one, at once. */
  readonly host: {
    problemOfName(name: string): string | undefined
    /** @throws AppError */
    setName(name: string): Promise<void>
  }
  /** Whether and to which platform this host is linked. */
  readonly platform: () => { readonly type: 'central' | 'local'; readonly platformEndpoint?: string }
  readonly clock: Pick<Clock, 'now'>
}

/** User data of this host. */
export interface UserDataPart {
  show(): Promise<UserData>
  /**
   * Applies it at once.
   * @param isNew refuses where there is some already
   * @returns the uid, and the trial of a link where one has begun
   * @throws AppError ClusterExists, UserDataExists, BadRequest; errors of the parts
   */
  apply(
    body: CloudInit,
    isNew: boolean,
    how: RequestOfLink,
  ): Promise<{ readonly uid: string; readonly change?: string }>
}

const longestTags = 65_536
const known = {
  root: ['hostName', 'network', 'registryCredentials', 'stages', 'tags', 'v1Management'],
  network: ['caCerts', 'httpProxy', 'httpsProxy', 'interfaces', 'noProxy'],
  link: ['gateway', 'ipAddress', 'nameserver', 'type'],
} as const

const isGiven = (value: unknown): boolean =>
  value !== undefined &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0) &&
  !(typeof value === 'object' && value !== null && Object.keys(value).length === 0)

function refuseUnknown(value: object, names: readonly string[], path: string): void {
  for (const name of Object.keys(value))
    if (!names.includes(name))
      throw refusedField(`${path}${name}`, `is not a field of user data; ${names.join(', ')} are`)
}

/** What this version cannot apply, and what does it instead. Pure. */
export function refuseUnapplied(
  { registryCredentials, stages, v1Management }: CloudInit,
  present: { readonly platform: { readonly type: 'central' | 'local' } },
): void {
  if (isGiven(stages))
    throw refusedField('stages', 'are commands of root, which this host does not take over the API')
  if (registryCredentials !== undefined)
    for (const [name, value] of Object.entries(registryCredentials))
      if (isGiven(value) && value !== false)
        throw refusedField(
          `registryCredentials.${name}`,
          'cannot be applied here yet; images of this host come from its content: edgehostctl content upload',
        )
  if (v1Management === undefined) return
  const { type, ...rest } = v1Management
  if (type !== present.platform.type)
    throw refusedField(
      'v1Management.type',
      type === 'central'
        ? 'cannot be applied here: it needs a restart of edgehostd; run on the host: edgehostctl platform connect URL'
        : 'cannot be applied here: this host is managed by a platform; run on the host: edgehostctl platform disconnect',
    )
  for (const [name, value] of Object.entries(rest))
    if (isGiven(value) && value !== false)
      throw refusedField(
        `v1Management.${name}`,
        'cannot be applied here; run on the host: edgehostctl platform connect URL --token-file FILE',
      )
}

/** An interface as `PUT /network/interfaces/{name}/config` takes it. Pure. @throws AppError BadRequest with its path */
export function linkWish(name: string, wanted: InterfaceOfUserData): LinkWish {
  const path = `network.interfaces.${name}`
  refuseUnknown(wanted, known.link, `${path}.`)
  const { type, ipAddress = '', gateway = '', nameserver = [] } = wanted
  const rest = {
    ...(gateway === '' ? {} : { gateway }),
    ...(nameserver.length === 0 ? {} : { nameservers: [...nameserver] }),
  }
  if (type === 'dhcp') {
    if (ipAddress !== '') throw refusedField(`${path}.ipAddress`, 'is only for the type static')
    return { type, ...rest }
  }
  const subnet = parseSubnet(ipAddress)
  if (subnet === undefined || !isIPv4(subnet.address))
    throw refusedField(
      `${path}.ipAddress`,
      'has to be an address of IPv4 with the length of its network: 192.0.2.7/24',
    )
  return { type, ip: subnet.address, subnet: dottedMask(subnet.prefixLength), ...rest }
}

export function createUserData(options: UserDataOptions): UserDataPart {
  const { database, configuration, links, hasCluster, hostName, host, platform, clock } = options
  const { sql } = database
  const select = sql.prepare('SELECT uid, tags FROM host_user_data')
  const stored = () => select.get() as { uid: string; tags: string } | undefined

  async function readLink(
    interfaces: Readonly<Record<string, InterfaceOfUserData>>,
    how: RequestOfLink,
  ): Promise<JudgedLink | undefined> {
    const names = Object.keys(interfaces)
    const judged: (JudgedLink & { readonly name: string })[] = []
    for (const [name, wanted] of Object.entries(interfaces)) {
      const found = await links.judge(name, linkWish(name, wanted), how)
      const [problem] = found.problems
      if (problem !== undefined) {
        throw refusedField(`network.interfaces.${name}${fieldOf(problem.field)}`, problem.reason)
      }
      judged.push({ ...found, name })
    }
    const changing = judged.filter(({ begin }) => begin !== undefined)
    const [, second] = changing
    if (second !== undefined)
      throw refusedField(
        `network.interfaces.${second.name}`,
        `would change too, and one link is tried at a time; of ${names.join(', ')} send one that changes, confirm it, and then the next`,
      )
    return changing[0]
  }

  return {
    async show() {
      const row = stored()
      const interfaces = await links.show()
      const open = links.open()
      return {
        hostName: hostName(),
        network: { ...configuration.show(), interfaces: { ...interfaces } },
        tags: row === undefined ? {} : (JSON.parse(row.tags) as Record<string, unknown>),
        v1Management: { ...platform() },
        ...(open === undefined ? {} : { networkChange: { ...open } }),
      }
    },

    async apply(body, isNew, how) {
      if (hasCluster())
        throw new AppError(
          configurationErrors.UserDataAfterCluster,
          'this host has a cluster: user data is for a host without one',
        )
      if (isNew && stored() !== undefined)
        throw new AppError(
          configurationErrors.UserDataExists,
          'this host has user data already; PUT replaces it',
        )
      refuseUnknown(body, known.root, '')
      const { network, tags } = body
      refuseUnapplied(body, { platform: platform() })
      const { hostName: named = '' } = body
      const isRenamed = named !== '' && named !== hostName()
      const problem = isRenamed ? host.problemOfName(named) : undefined
      if (problem !== undefined) throw refusedField('hostName', `${JSON.stringify(named)} ${problem}`)
      if (network !== undefined) refuseUnknown(network, known.network, 'network.')
      refuseRounded(tags, 'tags')
      const text = JSON.stringify(tags ?? {})
      if (text.length > longestTags) throw refusedField('tags', `are longer than ${longestTags} characters`)
      const { interfaces = {}, ...proxies }: NonNullable<CloudInit['network']> = network ?? {}
      if (network !== undefined) await withPath(() => configuration.plan(proxies))
      const link = await readLink(interfaces, how)
      // Everything has been judged. The trial first: another one may be open.
      const change = await link?.begin?.()
      if (isRenamed) await host.setName(named)
      if (network !== undefined) await withPath(() => configuration.put(proxies))
      const uid = uuidAt(clock.now())
      sql
        .prepare(
          'INSERT INTO host_user_data (one, uid, tags) VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET uid = excluded.uid, tags = excluded.tags',
        )
        .run(uid, text)
      return { uid, ...(change === undefined ? {} : { change }) }
    },
  }
}

/** The field of user data that stands for one of `PUT /network/interfaces/{name}/config`. */
const fieldOf = (field: string): string => {
  if (field === 'ip' || field === 'subnet') return '.ipAddress'
  if (field === 'gateway' || field === 'type') return `.${field}`
  return field.startsWith('nameservers') ? field.replace('nameservers', '.nameserver') : ''
}

/** The refusal of a field of the configuration, with its path in user data. */
async function withPath<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const field = error instanceof AppError ? error.details?.field : undefined
    if (!(error instanceof AppError) || error.kind !== generalErrors.BadRequest || typeof field !== 'string')
      throw error
    throw refusedField(`network.${field}`, error.message.slice(field.length + 1))
  }
}
