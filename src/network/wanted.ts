// What a request wants of the network, read from its body. Only the text is looked at here; whether it suits the host is for `preflight`. Pure.

import { isIPv4, isIPv6 } from 'node:net'
import { bareAddress, prefixLengthOfMask } from '../base/subnet.ts'
import {
  bondOptions,
  type BondRequest,
  type BridgeRequest,
  type NicRequest,
  type VlanRequest,
} from './schemas.ts'

/** IPv4 of a link, as a request names it; an absent field stays as it is. */
export interface Addressing {
  readonly type: 'dhcp' | 'static' | 'none'
  /** In CIDR form; with the type static. */
  readonly address?: string
  /** With the type static; absent: no default route over this link. */
  readonly gateway?: string
  readonly mtu?: number
  readonly nameservers?: readonly string[]
}

/** Options of a bond; an absent one stays as it is, and has our default in a new one. */
export interface WantedBond {
  readonly mode?: string
  /** As networkd spells it, in seconds. */
  readonly miiMonitorSec?: string
  readonly lacpTransmitRate?: string
  readonly transmitHashPolicy?: string
}

/** A change of the network. */
export type WantedChange =
  | { readonly kind: 'nic'; readonly name: string; readonly addressing: Addressing }
  | {
      readonly kind: 'bond'
      readonly name: string
      readonly addressing: Addressing
      readonly members: readonly string[]
      readonly options: WantedBond
    }
  | {
      readonly kind: 'bridge'
      readonly name: string
      readonly addressing: Addressing
      readonly members: readonly string[]
      readonly isStpOn?: boolean
    }
  | {
      readonly kind: 'vlan'
      readonly name: string
      readonly addressing: Addressing
      readonly parent: string
      readonly parentType: 'nic' | 'bond'
      readonly id: number
    }
  | { readonly kind: 'delete'; readonly of: 'bond' | 'vlan' | 'bridge'; readonly name: string }

/** A reason against a change. The field is one of the request; the reason continues the sentence that it begins. */
export interface Problem {
  readonly field: string
  readonly reason: string
}

export type Read = { readonly wanted: WantedChange } | { readonly problems: readonly Problem[] }

// Ethernet II allows 1500 at least on each NIC; below 68 there is no IPv4 (RFC 791), and 9216 is the most that switches carry.
const mtuBounds = { least: 68, most: 9_216 }
// The largest networks that were ever given out (RFC 1466); a larger one hides addresses of others.
const leastPrefix = 8
// Below this the kernel turns IPv6 off on a link (RFC 8200, 5).
const leastOfIpv6 = 1_280

type Body = Pick<NicRequest, 'ip' | 'subnet' | 'gateway' | 'mtu' | 'nameservers'> & {
  readonly type?: Addressing['type']
}

/** Clients of the service API send an empty text for no value. */
const given = (text: string | undefined) => (text === undefined || text === '' ? undefined : text)

function readAddressing(body: Body, problems: Problem[]): Addressing {
  const type = body.type ?? 'dhcp'
  const refuse = (field: string, reason: string) => void problems.push({ field, reason })
  const [ip, subnet, gateway] = [given(body.ip), given(body.subnet), given(body.gateway)]
  for (const [field, value] of Object.entries({ ip, subnet, gateway }))
    if (value !== undefined && type !== 'static')
      refuse(field, `is only for the type static, and the type is ${type}`)
  const prefixLength = subnet === undefined ? undefined : prefixLengthOfMask(subnet)
  if (type === 'static') {
    if (ip === undefined) refuse('ip', 'is missing: the type static needs an address')
    else if (!isIPv4(ip)) refuse('ip', `${JSON.stringify(ip)} is not an IPv4 address`)
    if (subnet === undefined)
      refuse('subnet', 'is missing: the type static needs a mask, for example 255.255.255.0')
    else if (prefixLength === undefined)
      refuse('subnet', `${JSON.stringify(subnet)} is not a mask, for example 255.255.255.0`)
    else if (prefixLength < leastPrefix)
      refuse(
        'subnet',
        `is ${subnet}: no link has so large a network; the least mask is 255.0.0.0, a usual one 255.255.255.0`,
      )
    if (gateway !== undefined && !isIPv4(gateway))
      refuse('gateway', `${JSON.stringify(gateway)} is not an IPv4 address`)
  }
  const { mtu } = body
  if (mtu !== undefined && (mtu < mtuBounds.least || mtu > mtuBounds.most))
    refuse('mtu', `is ${mtu}: it has to be ${mtuBounds.least} to ${mtuBounds.most}`)
  for (const [index, server] of (body.nameservers ?? []).entries())
    if (!isIPv4(server) && !isIPv6(server))
      refuse(`nameservers[${index}]`, `${JSON.stringify(server)} is not an address`)
  return {
    type,
    ...(type === 'static' && ip !== undefined && prefixLength !== undefined
      ? { address: `${bareAddress(ip)}/${prefixLength}` }
      : {}),
    ...(type === 'static' && gateway !== undefined ? { gateway } : {}),
    ...(mtu === undefined ? {} : { mtu }),
    ...(body.nameservers === undefined ? {} : { nameservers: body.nameservers }),
  }
}

const answer = (wanted: WantedChange, problems: readonly Problem[]): Read =>
  problems.length > 0 ? { problems } : { wanted }

/** Names in body and path have to be the same, where the body has one. */
function checkName(name: string, inBody: string | undefined, problems: Problem[]): void {
  if (given(inBody) !== undefined && inBody !== name)
    problems.push({
      field: 'name',
      reason: `${JSON.stringify(inBody)} is not the name in the path, ${JSON.stringify(name)}; a link is not renamed`,
    })
}

/** `vlanID` of interfaces and bonds has no effect there. */
function refuseVlanId(name: string, id: string | undefined, problems: Problem[]): void {
  if (given(id) !== undefined)
    problems.push({
      field: 'vlanID',
      reason: `is not set on ${name} itself; make the VLAN ${name}.${id} with POST /v1/edge-mgmt/network/vlans/${name}.${id}`,
    })
}

/** The kernel's limit of a name is 15 bytes; a name that begins as those of pods would not be shown. */
function checkNewName(name: string, problems: Problem[]): void {
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,14}$/.test(name))
    problems.push({
      field: 'name',
      reason: `${JSON.stringify(name)} is no name for a new link: a letter, then at most 14 letters, digits, - and _`,
    })
  else if (
    ['all', 'default', 'lo'].includes(name) ||
    /^(cali|cni|docker|veth|virbr|flannel|kube-|br-[0-9a-f]{12}$)/.test(name)
  )
    problems.push({
      field: 'name',
      reason: `${JSON.stringify(name)} is a name of the kernel or of containers`,
    })
}

/** `PUT /network/interfaces/{name}/config`. */
export function readNic(name: string, body: NicRequest): Read {
  const problems: Problem[] = []
  checkName(name, body.name, problems)
  refuseVlanId(name, body.vlanID, problems)
  return answer({ kind: 'nic', name, addressing: readAddressing(body, problems) }, problems)
}

const oneOf = (field: string, value: string | undefined, values: readonly string[], problems: Problem[]) => {
  if (value && !values.includes(value))
    problems.push({ field, reason: `${JSON.stringify(value)} is none of ${values.join(', ')}` })
}

function checkMembers(name: string, members: readonly string[], problems: Problem[]): void {
  for (const [index, member] of members.entries()) {
    const field = `members[${index}]`
    if (member === name) problems.push({ field, reason: `is ${name} itself` })
    if (members.indexOf(member) !== index) problems.push({ field, reason: `names ${member} a second time` })
  }
}

/** `PUT` or `POST /network/bonds/{name}`. */
export function readBond(name: string, body: BondRequest): Read {
  const problems: Problem[] = []
  checkName(name, body.name, problems)
  checkNewName(name, problems)
  refuseVlanId(name, body.vlanID, problems)
  checkMembers(name, body.members, problems)
  if (body.members.length === 0)
    problems.push({ field: 'members', reason: 'is empty: a bond needs an interface' })
  oneOf('mode', body.mode, bondOptions.mode, problems)
  oneOf('lacpTransmitRate', body.lacpTransmitRate, bondOptions.lacpTransmitRate, problems)
  oneOf('transmitHashPolicy', body.transmitHashPolicy, bondOptions.transmitHashPolicy, problems)
  const mode = given(body.mode)
  if (given(body.lacpTransmitRate) !== undefined && mode !== undefined && mode !== '802.3ad')
    problems.push({
      field: 'lacpTransmitRate',
      reason: `is only for the mode 802.3ad, and the mode is ${mode}`,
    })
  const interval = given(body.miiMonitorSec)
  if (interval !== undefined && !/^\d{1,3}(\.\d{1,3})?$/.test(interval))
    problems.push({
      field: 'miiMonitorSec',
      reason: `${JSON.stringify(interval)} is not a number of seconds, for example 0.1`,
    })
  const options: WantedBond = {
    ...(mode === undefined ? {} : { mode }),
    ...(interval === undefined ? {} : { miiMonitorSec: interval }),
    ...(given(body.lacpTransmitRate) === undefined ? {} : { lacpTransmitRate: body.lacpTransmitRate }),
    ...(given(body.transmitHashPolicy) === undefined ? {} : { transmitHashPolicy: body.transmitHashPolicy }),
  }
  const addressing = readAddressing(body, problems)
  return answer({ kind: 'bond', name, addressing, members: body.members, options }, problems)
}

/** `PUT` or `POST /network/bridges/{name}`. */
export function readBridge(name: string, body: BridgeRequest): Read {
  const problems: Problem[] = []
  const { members = [], stpEnabled } = body
  checkName(name, body.name, problems)
  checkNewName(name, problems)
  checkMembers(name, members, problems)
  const addressing = readAddressing(body, problems)
  return answer(
    { kind: 'bridge', name, addressing, members, ...(stpEnabled == null ? {} : { isStpOn: stpEnabled }) },
    problems,
  )
}

/** `PUT` or `POST /network/vlans/{name}`. */
export function readVlan(name: string, body: VlanRequest): Read {
  const problems: Problem[] = []
  const { parentName, parentType, vlanID } = body
  if (!/^\d{1,4}$/.test(vlanID) || Number(vlanID) < 1 || Number(vlanID) > 4_094)
    problems.push({ field: 'vlanID', reason: `${JSON.stringify(vlanID)} is not 1 to 4094` })
  const assigned = `${parentName}.${Number(vlanID)}`
  if (name !== assigned)
    problems.push({
      field: 'name',
      reason: `is ${JSON.stringify(name)}: the name of this VLAN is ${assigned}`,
    })
  if (Buffer.byteLength(assigned) > 15)
    problems.push({
      field: 'parentName',
      reason: `makes the name ${assigned}, which is longer than 15 characters`,
    })
  const addressing = readAddressing(body, problems)
  return answer(
    { kind: 'vlan', name, addressing, parent: parentName, parentType, id: Number(vlanID) },
    problems,
  )
}

/** What only warns: the change is made. */
export const warningsOf = (wanted: WantedChange): readonly string[] =>
  wanted.kind !== 'delete' && wanted.addressing.mtu !== undefined && wanted.addressing.mtu < leastOfIpv6
    ? [`an MTU below ${leastOfIpv6} turns IPv6 off on ${wanted.name}`]
    : []
