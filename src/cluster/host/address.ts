import { isIPv4 } from 'node:net'
import { isAddress, addressOfHex, canonicalAddress, isLoopback } from '../../base/address.ts'
import { units, unitFolder } from '../engine/paths.ts'
import { spellSubnet, subnetOfOne, type Subnet } from '../../base/subnet.ts'
import { judgeEndpoint, saidOfEndpoint } from './endpoint.ts'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import { StepFailed } from '../loop/step.ts'
import { addressUnit, createOwnAddresses, dotted, isUsable } from '../../host/network/network.ts'
import { kernelTableBytes, type HostFiles } from '../../host/files.ts'
import type { DesiredNode } from '../desired/desired-state.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'

/** A virtual address and its interface. */
export interface HeldAddress {
  readonly address: string
  readonly networkInterface: string
}

/** As the kernel accepts names of interfaces (net/core/dev.c, dev_valid_name), without what systemd or a shell would read. */
const isInterfaceName = (name: string): boolean =>
  /^[A-Za-z0-9_.-]{1,15}$/.test(name) && name !== '.' && name !== '..'

/** The address with the length of one address: no route of a network comes with it, and it is not chosen as a source. */
const heldPrefix = (address: string): string => spellSubnet(subnetOfOne(address))

/**
 * The text of the unit. It adds the address again whenever the kernel says that it was removed, as a restart of the network service
 * does. While there is no such interface it ends, and systemd starts it again.
 * @throws Error for an address or a name that could break the unit
 */
export function addressUnitText({ address, networkInterface }: HeldAddress): string {
  if (!isAddress(address) || !isInterfaceName(networkInterface))
    throw new Error(`${address} on ${networkInterface} cannot be held by a unit`)
  const prefix = heldPrefix(address)
  const place = `${prefix} dev ${networkInterface}`
  const add = `ip address replace ${place}${isIPv4(address) ? '' : ' nodad preferred_lft 0'}`
  const removed = `"Deleted "*" ${prefix} "*`
  return `# Written by edgehostd for its cluster; removed when the cluster is deleted.
[Unit]
Description=Virtual address ${address} of the cluster of edgehostd
After=network-pre.target systemd-networkd.service NetworkManager.service networking.service
Before=${units.kubelet} ${units.containerd}
StartLimitIntervalSec=0

[Service]
ExecStartPre=/bin/sh -c 'exec ${add}'
ExecStart=/bin/sh -c 'ip -oneline monitor address dev ${networkInterface} | while read -r line; do case "$$line" in ${removed}) ${add} || kill 0;; esac; done'
ExecStopPost=-/bin/sh -c 'exec ip address delete ${place}'
Restart=always
RestartSec=1
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
`
}

const timeoutMs = 30_000

/**
 * Has the unit hold a virtual address, now and after each start of the host. An address that it held before is given up.
 * @throws StepFailed with the reason of the kernel or of systemd
 */
export async function holdAddress(runner: CommandRunner, held: HeldAddress): Promise<void> {
  const text = addressUnitText(held)
  // With the commands of the old unit, which know its address.
  if ((await readUnit()) !== text)
    await run(runner, 'systemctl', ['stop', addressUnit]).catch(() => undefined)
  // Fails at once, with the words of the kernel, where the unit would only try again.
  await run(runner, 'ip', ['address', 'replace', heldPrefix(held.address), 'dev', held.networkInterface])
  await replaceFile(join(unitFolder, addressUnit), text, 0o644)
  await run(runner, 'systemctl', ['daemon-reload'])
  await run(runner, 'systemctl', ['enable', '--quiet', addressUnit])
  await run(runner, 'systemctl', ['restart', addressUnit])
}

/** Takes the unit and its address from the host; one that is not there is no error. */
export async function dropAddress(runner: CommandRunner): Promise<void> {
  // The unit may be unknown.
  await run(runner, 'systemctl', ['disable', '--quiet', '--now', addressUnit]).catch(() => undefined)
  await rm(join(unitFolder, addressUnit), { force: true })
  await run(runner, 'systemctl', ['daemon-reload'])
  await run(runner, 'systemctl', ['reset-failed', addressUnit]).catch(() => undefined)
}

const readUnit = () => readFile(join(unitFolder, addressUnit), 'utf8').catch(() => undefined)

async function run(runner: CommandRunner, program: string, args: readonly string[]): Promise<void> {
  const ended = await runner.run(program, args, { timeoutMs }).catch((error: unknown) => {
    throw error instanceof CommandFailed ? new StepFailed(error.message, { cause: error }) : error
  })
  if (ended.exitCode === 0) return
  const said = (ended.stderr.trim() || ended.stdout.trim()).split('\n').slice(0, 2).join('; ')
  throw new StepFailed(`${program} ${args.join(' ')}: ${said || `exit code ${ended.exitCode ?? 'none'}`}`)
}

/** A route of this host, but no default route. */
interface HostRoute {
  readonly subnet: Subnet
  readonly networkInterface: string
  /** Its addresses are reached without a gateway. */
  readonly isConnected: boolean
}

export interface HostNetworks {
  /** All addresses of this host. */
  readonly addresses: ReadonlySet<string>
  readonly routes: readonly HostRoute[]
}

/** Reads addresses and routes from /proc/net. */
export async function readHostNetworks(files: HostFiles): Promise<HostNetworks> {
  const own = createOwnAddresses(files)
  const [ipv4 = '', ipv6 = ''] = await Promise.all([
    files.text('/proc/net/route', kernelTableBytes),
    files.text('/proc/net/ipv6_route', kernelTableBytes),
    own.refresh(),
  ])
  return { addresses: own.current().addresses, routes: [...parseIpv4Routes(ipv4), ...parseIpv6Routes(ipv6)] }
}

/**
 * Address of the node that this host has lost, as by another lease; the control plane cannot listen then. The virtual address has a unit
 * that adds it again. Pure.
 * @returns with the next command; undefined where it has all
 */
export function missingAddress(
  { address, endpoint, virtualAddress }: Pick<DesiredNode, 'address' | 'endpoint' | 'virtualAddress'>,
  { addresses, routes }: HostNetworks,
): string | undefined {
  const needed = [address, ...(virtualAddress ? [] : [endpoint])].map(canonicalAddress)
  const lost = needed.find((each) => isAddress(each) && !addresses.has(each))
  // Every host has its loopback address: without any, they could not be read.
  if (lost === undefined || addresses.size === 0) return undefined
  const others = [...addresses].filter(
    (each) => !isLoopback(each) && isIPv4(each) === isIPv4(lost) && !/^fe[89ab]/.test(each),
  )
  const at = routes.find(({ isConnected }) => isConnected)?.networkInterface ?? 'INTERFACE'
  const has = others.length === 0 ? 'it has none' : `it has ${others.slice(0, 3).join(', ')}`
  return `the address ${lost} of the node is not on this host any more (${has}); give it back: ip address add ${lost}/PREFIX dev ${at}, and in the configuration of its network for each boot; or delete the cluster and create it again with the new address: edgehostctl cluster delete`
}

// <linux/ipv6_route.h>
const rtfLocal = 0x80000000

/** Routes of /proc/net/route; see `host/network/routing-table.ts` for its numbers. */
export function parseIpv4Routes(text: string): readonly HostRoute[] {
  return text.split('\n').flatMap((line): HostRoute[] => {
    const [networkInterface, destination = '', gateway, flags = '', , , , mask = ''] = line
      .trim()
      .split(/\s+/)
    if (!networkInterface || !/^[0-9A-F]{8}$/.test(destination) || !leadsToOthers(flags)) return []
    const prefixLength = parseInt(mask, 16).toString(2).replaceAll('0', '').length
    if (prefixLength === 0) return []
    const subnet = { address: dotted(destination), prefixLength }
    return [{ subnet, networkInterface, isConnected: gateway === '00000000' }]
  })
}

/** Routes of /proc/net/ipv6_route (net/ipv6/route.c, rt6_info_route), without those for one link, for groups and for this host. */
export function parseIpv6Routes(text: string): readonly HostRoute[] {
  return text.split('\n').flatMap((line): HostRoute[] => {
    const [destination = '', length = '', , , gateway = '', , , , flags = '', networkInterface] = line
      .trim()
      .split(/\s+/)
    if (!networkInterface || networkInterface === 'lo' || !leadsToOthers(flags)) return []
    const prefixLength = parseInt(length, 16)
    if (prefixLength === 0 || /^f(e[89ab]|f)/.test(destination)) return []
    return [
      {
        subnet: { address: addressOfHex(destination), prefixLength },
        networkInterface,
        isConnected: /^0+$/.test(gateway),
      },
    ]
  })
}

function leadsToOthers(flags: string): boolean {
  const bits = parseInt(flags, 16)
  return isUsable(bits) && (bits & rtfLocal) === 0
}

/** Place of the address of the control plane: on this host already, on an interface that a unit gives it to, or nowhere. */
export type EndpointPlace =
  | { readonly kind: 'own' }
  | { readonly kind: 'virtual'; readonly virtualAddress: HeldAddress }
  | { readonly kind: 'refused'; readonly problem: PreflightProblem }

export const endpointPath = 'spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint.host'

/** Judges the address that was posted for the control plane; an empty one stands for the address of this host. */
export function placeEndpoint(host: string, { addresses, routes }: HostNetworks): EndpointPlace {
  const text = host.trim()
  const refuse = (reason: string): EndpointPlace => ({
    kind: 'refused',
    problem: {
      code: 'EndpointInvalid',
      severity: 'error',
      path: endpointPath,
      message: saidOfEndpoint(text, reason),
    },
  })
  const judged = judgeEndpoint(text, {
    called: 'this host',
    addresses,
    networks: routes.filter(({ isConnected }) => isConnected),
  })
  if (judged.kind === 'own') return judged
  if (judged.kind !== 'within') return refuse(judged.reason)
  const {
    address,
    network: { networkInterface },
  } = judged
  if (!isInterfaceName(networkInterface))
    return refuse(
      `is in the network of the interface ${JSON.stringify(networkInterface)}, whose name a unit cannot hold`,
    )
  return { kind: 'virtual', virtualAddress: { address, networkInterface } }
}
