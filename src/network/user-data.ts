import { isIPv4 } from 'node:net'
import { dottedMask, parseSubnet } from '../base/subnet.ts'
import { refusedField, refuseUnknownFields } from '../errors/refused-field.ts'
import { requireInterfaceName } from './routes.ts'
import { isOtherThanTrial, windowOf, type NetworkWritesOptions } from './routes-writes.ts'
import type { InterfaceOfUserData, NicRequest } from './schemas.ts'
import type { NetworkReading } from './links/links.ts'
import type { Planner } from './planner.ts'
import { otherIsOpen, type Trials, type TrialRequest } from './trial/trials.ts'
import { readNic } from './wanted.ts'
import { defaultRoutesOf, shownAddress, typeOf } from './wire.ts'

interface LinksOptions {
  readonly read: () => Promise<NetworkReading>
  readonly planner: Planner
  readonly trials: Pick<Trials, 'start' | 'open' | 'lastEnded'>
  readonly busy: NetworkWritesOptions['busy']
  readonly shortestWindowSeconds: number
}

/** Interfaces by name, as user data has them. */
export type InterfacesByName = Readonly<Record<string, InterfaceOfUserData>>

/** Who asks for a change of links, and by which way. */
export type RequestOfLinks = Pick<TrialRequest, 'requestedBy' | 'cameBy'>

/** The links of a host as its user data names them. All that differ are changed in one trial. */
export interface LinksByName {
  /** The configured interfaces, as they are in force. @throws AppError */
  show(): Promise<InterfacesByName>
  /** The change that is tried now. */
  open(): { readonly uid: string; readonly summary: string; readonly state: string } | undefined
  /**
   * Judges a change of interfaces. What `show` gives, sent back, changes nothing.
   * @returns how to begin its trial, whose uid that gives; undefined where all of them are configured so already. The address of the host may be
   * another one soon after: a reply to a client has to leave at once
   * @throws AppError BadRequest with the path in user data; NetworkChangeOpen, Busy; of the network
   */
  judge(interfaces: InterfacesByName, how: RequestOfLinks): Promise<(() => Promise<string>) | undefined>
}

const pathOf = (name: string) => `network.interfaces.${name}`
const fields = ['gateway', 'ipAddress', 'nameserver', 'type'] as const

/** An interface as `PUT /network/interfaces/{name}/config` takes it. Pure. @throws AppError BadRequest with its path */
export function nicRequest(name: string, wanted: InterfaceOfUserData): NicRequest {
  const path = pathOf(name)
  refuseUnknownFields(wanted, fields, `${path}.`, 'an interface of user data')
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

/** Whether an interface is so already, as far as a request names it. Pure. */
export function isSo(wanted: InterfaceOfUserData, shown: InterfaceOfUserData | undefined): boolean {
  const { type, ipAddress = '', gateway = '', nameserver = [] } = wanted
  if (
    shown?.type !== type ||
    Object.keys(wanted).some((name) => !(fields as readonly string[]).includes(name))
  )
    return false
  const isSame = (sent: string, present = '') => sent === present || (type === 'dhcp' && sent === '')
  return (
    isSame(ipAddress, shown.ipAddress) &&
    isSame(gateway, shown.gateway) &&
    (nameserver.length === 0 || JSON.stringify(nameserver) === JSON.stringify(shown.nameserver ?? []))
  )
}

/** The field of user data that stands for one of `PUT /network/interfaces/{name}/config`. */
const fieldOf = (field: string): string => {
  if (field === 'ip' || field === 'subnet') return '.ipAddress'
  if (field === 'gateway' || field === 'type') return `.${field}`
  return field.startsWith('nameservers') ? field.replace('nameservers', '.nameserver') : ''
}

/** Builds it on the planner and the trials of the room. */
export function createLinksByName(options: LinksOptions): LinksByName {
  const { read, planner, trials, busy, shortestWindowSeconds } = options
  async function show(): Promise<InterfacesByName> {
    const { links } = await read()
    return Object.fromEntries(
      links.flatMap((link): [string, InterfaceOfUserData][] => {
        const type = typeOf(link)
        if (type === 'none') return []
        const own = shownAddress(link)
        const [route] = defaultRoutesOf(link)
        return [
          [
            link.name,
            {
              type,
              ...(own === undefined ? {} : { ipAddress: `${own.address}/${own.prefixLength}` }),
              ...(route?.gateway === undefined ? {} : { gateway: route.gateway }),
              nameserver: [...link.nameservers],
            },
          ],
        ]
      }),
    )
  }

  return {
    show,
    open() {
      const found = trials.open()
      return found && { uid: found.uid, summary: found.summary, state: found.state }
    },
    async judge(interfaces, how) {
      const plannedAfter = trials.lastEnded()
      const names = Object.keys(interfaces)
      if (names.length === 0) return undefined
      const open = trials.open()
      // What is in force now may be taken back.
      if (open?.links.some((link) => names.includes(link)) === true) throw otherIsOpen(open.uid)
      const shown = await show()
      const all = Object.entries(interfaces).filter(([name, wanted]) => !isSo(wanted, shown[name]))
      for (const [name] of all) requireInterfaceName(name)
      if (all.length === 0) return undefined
      const reads = all.map(([name, wanted]) => ({ name, read: readNic(name, nicRequest(name, wanted)) }))
      const { problems, change, changesWayOut } = await planner.prepareTogether(reads)
      const [problem] = problems
      if (problem !== undefined)
        throw refusedField(`${pathOf(problem.name)}${fieldOf(problem.field)}`, problem.reason)
      if (change === undefined) return undefined
      const refuseBusy = () => busy.refuse('a change of the network', isOtherThanTrial)
      if (open !== undefined) throw otherIsOpen(open.uid)
      refuseBusy()
      const windowSeconds = windowOf(change, undefined, shortestWindowSeconds)
      return async () => {
        const request = { ...how, windowSeconds, changesWayOut, plannedAfter, refuseBusy }
        return (await trials.start(change, request)).uid
      }
    },
  }
}
