// `network set|bond|vlan|bridge|delete`: what the command line says becomes the body of a request, and the change is followed to its end.

import { isIPv4 } from 'node:net'
import { printable } from '../../base/printable.ts'
import { dottedMask } from '../../base/subnet.ts'
import { jsonBody, refusalOf, type Context } from '../../ctl/client.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { oneLine, renderFacts, renderTable, type Column, type Fact, type Paper } from '../../ctl/layout.ts'
import { parseBody, problemsOf, type Reply } from '../../ctl/reply.ts'
import type {
  BondRequest,
  BridgeRequest,
  NetworkChange,
  NetworkChangeAccepted,
  NetworkDryRun,
  NicRequest,
  VlanRequest,
} from '../schemas.ts'
import { changesPath, followChange } from './follow.ts'
import { readAll } from './show.ts'

const root = '/v1/edge-mgmt/network'

type TrialOption = 'dry-run' | 'window' | 'drop-address' | 'no-confirm' | 'confirm'
type AddressOption = 'type' | 'address' | 'gateway' | 'mtu' | 'nameserver'
type ChangeContext<Name extends string = never> = Context<TrialOption | Name>

/** A request that begins a change. */
interface Begun {
  readonly method: 'PUT' | 'DELETE'
  /** Below `/v1/edge-mgmt/network`. */
  readonly path: string
  readonly body?: NicRequest | BondRequest | VlanRequest | BridgeRequest
  /** The address in CIDR form, where the request names one. */
  readonly address?: string
}

/** IPv4 of a link, as the API takes it. @throws Failure usage */
function addressingOf({ line }: Pick<Context<AddressOption>, 'line'>) {
  const { type, address, gateway, mtu } = line.options
  const servers = line.lists?.nameserver
  if (type === undefined && address === undefined)
    throw new Failure(
      'usage',
      `${line.command.name} needs --address ADDRESS/LENGTH or --type, which say how the link gets its address`,
    )
  const [, ip, length] = /^([^/]+)\/(\d{1,2})$/.exec(address ?? '') ?? []
  if (address !== undefined && (ip === undefined || !isIPv4(ip) || Number(length) > 32))
    throw new Failure(
      'usage',
      `--address is ${printable(address)}; it must be an IPv4 address with the length of its network, for example 192.0.2.9/24`,
    )
  return {
    type: (type ?? 'static') as 'dhcp' | 'static' | 'none',
    ...(ip === undefined ? {} : { ip, subnet: dottedMask(Number(length)) }),
    ...(gateway === undefined ? {} : { gateway }),
    ...(mtu === undefined ? {} : { mtu: wholeNumber('mtu', mtu) }),
    ...(servers === undefined
      ? {}
      : { nameservers: servers.length === 1 && servers[0] === 'none' ? [] : [...servers] }),
  }
}

/** @throws Failure usage */
function wholeNumber(option: string, text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new Failure('usage', `--${option} is ${printable(text)}; it must be a whole number`)
  return Number(text)
}

const pathTo = (kind: string, name: string) => `${kind}/${encodeURIComponent(name)}`

/** `edgehostctl network set NAME`. */
export function setLink(context: ChangeContext<AddressOption>): Promise<ExitName | undefined> {
  const [name = ''] = context.line.arguments
  const body = addressingOf(context) as NicRequest
  const { address } = context.line.options
  return change(context, {
    method: 'PUT',
    path: `${pathTo('interfaces', name)}/config`,
    body,
    ...(address === undefined ? {} : { address }),
  })
}

/** `edgehostctl network bond NAME`. */
export function putBond(
  context: ChangeContext<AddressOption | 'mode' | 'mii-monitor' | 'lacp-rate' | 'hash-policy'>,
): Promise<ExitName | undefined> {
  const { line } = context
  const [name = ''] = line.arguments
  const { mode, 'mii-monitor': miiMonitorSec, 'lacp-rate': lacpTransmitRate, address } = line.options
  const { 'hash-policy': transmitHashPolicy } = line.options
  const body: BondRequest = {
    ...addressingOf(context),
    members: membersOf(context),
    ...(mode === undefined ? {} : { mode }),
    ...(miiMonitorSec === undefined ? {} : { miiMonitorSec }),
    ...(lacpTransmitRate === undefined ? {} : { lacpTransmitRate }),
    ...(transmitHashPolicy === undefined ? {} : { transmitHashPolicy }),
  }
  return change(context, {
    method: 'PUT',
    path: pathTo('bonds', name),
    body,
    ...(address === undefined ? {} : { address }),
  })
}

/** `edgehostctl network bridge NAME`. */
export function putBridge(context: ChangeContext<AddressOption | 'stp'>): Promise<ExitName | undefined> {
  const { line } = context
  const [name = ''] = line.arguments
  const { stp, address } = line.options
  const body: BridgeRequest = {
    ...addressingOf(context),
    members: membersOf(context),
    ...(stp === undefined ? {} : { stpEnabled: stp === 'on' }),
  }
  return change(context, {
    method: 'PUT',
    path: pathTo('bridges', name),
    body,
    ...(address === undefined ? {} : { address }),
  })
}

const membersOf = ({ line }: Pick<Context, 'line'>): string[] => [...(line.lists?.member ?? [])]

/** `edgehostctl network vlan NAME`: its parent and its number are in its name. */
export async function putVlan(
  context: ChangeContext<AddressOption | 'parent' | 'id'>,
): Promise<ExitName | undefined> {
  const { line } = context
  const [name = ''] = line.arguments
  const [, parentOfName, idOfName] = /^(.+)\.(\d{1,4})$/.exec(name) ?? []
  const { parent = parentOfName, id = idOfName, address } = line.options
  if (parent === undefined || id === undefined)
    throw new Failure(
      'usage',
      `the name of a VLAN is PARENT.ID, for example eth0.20; ${printable(name)} is not. Or add --parent and --id`,
    )
  const addressing = addressingOf(context)
  const { items } = await readAll(context)
  const body = {
    ...addressing,
    parentName: parent,
    parentType: items.some((each) => each.name === parent && each.kind === 'bond') ? 'bond' : 'nic',
    vlanID: id,
  } as VlanRequest
  return change(context, {
    method: 'PUT',
    path: pathTo('vlans', name),
    body,
    ...(address === undefined ? {} : { address }),
  })
}

/** `edgehostctl network delete NAME`. */
export async function deleteLink(context: ChangeContext): Promise<ExitName | undefined> {
  const [name = ''] = context.line.arguments
  const { items } = await readAll(context)
  const kind = items.find((each) => each.name === name)?.kind
  if (kind === undefined)
    throw new Failure(
      'failed',
      `this host has no link ${printable(name)}; edgehostctl network list shows all`,
    )
  if (kind !== 'bond' && kind !== 'vlan' && kind !== 'bridge')
    throw new Failure(
      'failed',
      `${name} is a ${kind === 'wifi' ? 'Wi-Fi interface' : 'NIC'}; only bonds, VLANs and bridges are deleted`,
    )
  return change(context, { method: 'DELETE', path: pathTo(`${kind}s`, name) })
}

/** Begins a change, and follows it. */
async function change(context: ChangeContext, begun: Begun): Promise<ExitName | undefined> {
  const { client, line, output, target } = context
  const { 'dry-run': dryRun, window, 'drop-address': dropAddress, 'no-confirm': noConfirm } = line.options
  const { confirm } = line.options
  if (confirm !== undefined && noConfirm !== undefined)
    throw new Failure('usage', '--confirm and --no-confirm exclude each other')
  const send = async (more: Readonly<Record<string, string>>, ifMatch?: string): Promise<Reply> => {
    const query = new URLSearchParams({
      ...(window === undefined ? {} : { window: String(wholeNumber('window', window)) }),
      ...(dropAddress === undefined ? {} : { dropAddress: 'true' }),
      ...(confirm === undefined ? {} : { confirm }),
      ...more,
    }).toString()
    const { headers = {}, ...sent } = begun.body
      ? jsonBody(Buffer.from(JSON.stringify(begun.body)))
      : { headers: {} }
    return client.ask({
      method: begun.method,
      path: `${root}/${begun.path}${query && `?${query}`}`,
      ...sent,
      headers: { ...headers, ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) },
    })
  }
  // Over the network it also says where the host will be found.
  const isLocal = target.kind === 'socket'
  let reachableBy: readonly string[] = []
  /** Of the link as the dry run has judged it; a new one has none. */
  let etag: string | undefined
  if (dryRun !== undefined || !isLocal) {
    const reply = await send({ dryRun: 'true' })
    if (reply.status !== 200) throw refusalOf(target, reply)
    const found = parseBody<NetworkDryRun>(reply, ['problems', 'warnings', 'lostRoutes', 'reachableBy'])
    if (dryRun !== undefined) {
      await output.show(found, (paper) => renderDryRun(found, paper))
      return found.problems.length > 0 ? 'failed' : undefined
    }
    if (found.problems.length > 0) return refuse(context, found.problems)
    for (const each of found.lostRoutes) output.note(`a route goes: ${each}`)
    ;({ reachableBy } = found)
    ;({ etag } = reply.headers)
  }
  const before = await client.get<{ items: NetworkChange[] }>(changesPath, ['items'])
  const accepted = await begin(() => send({}, etag), isLocal)
  if (accepted !== undefined && accepted.status !== 202) {
    const problems = problemsOf(accepted)
    if (problems !== undefined) return refuse(context, problems as unknown as NetworkDryRun['problems'])
    throw refusalOf(target, accepted)
  }
  const reply = accepted && parseBody<NetworkChangeAccepted>(accepted, ['message'])
  if (reply && reply.uid === undefined) {
    await output.show(reply, () => `${oneLine(reply.message)}\n`)
    return undefined
  }
  return followChange(context, {
    uid: reply?.uid,
    before: before.items[0]?.uid ?? '',
    address: begun.address,
    isByDhcp: begun.body?.type === 'dhcp',
    reachableBy,
    windowSeconds: window === undefined ? longestDefaultSeconds : Number(window),
    confirmation: noConfirm !== undefined ? 'later' : confirm === undefined ? 'command' : 'platform',
  })
}

/** Of a change by DHCP; what the host has chosen is in its first answer. */
const longestDefaultSeconds = 120

/** The reply to a change; undefined where it was lost, which the change itself may be the reason of. */
async function begin(send: () => Promise<Reply>, isLocal: boolean): Promise<Reply | undefined> {
  try {
    return await send()
  } catch (error) {
    if (isLocal || !(error instanceof Failure) || error.exitName !== 'unreachable') throw error
    return undefined
  }
}

/** Shows all problems. @throws Failure */
async function refuse(
  { output }: Pick<Context, 'output'>,
  problems: NetworkDryRun['problems'],
): Promise<never> {
  await output.show({ problems }, ({ columns }) => renderTable(problems, problemLayout, columns))
  throw new Failure('failed', 'the change is refused; nothing was changed')
}

const problemLayout: readonly Column<NetworkDryRun['problems'][number]>[] = [
  { title: 'FIELD', read: ({ field }) => field },
  { title: 'PROBLEM', read: ({ reason }) => reason, isFlexible: true },
]

function renderDryRun(found: NetworkDryRun, paper: Paper): string {
  const { problems, warnings, lostRoutes, reachableBy, summary } = found
  if (problems.length > 0) return renderTable(problems, problemLayout, paper.columns)
  const facts: Fact[] = [
    { label: 'Change', lines: [summary ?? 'nothing: the link is configured so already'] },
    ...(warnings.length === 0 ? [] : [{ label: 'Warning', lines: warnings, mood: 'warning' as const }]),
    ...(lostRoutes.length === 0
      ? []
      : [{ label: 'Routes that go', lines: lostRoutes, mood: 'warning' as const }]),
    {
      label: 'Reachable by',
      lines: reachableBy.length === 0 ? ['an address that is not known before'] : reachableBy,
    },
  ]
  return renderFacts(facts, paper)
}
