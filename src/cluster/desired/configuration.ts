import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { canonicalAddress, isAddress } from '../../base/address.ts'
import type { GivenVariable } from '../../definition/definition.ts'
import { refusedField, refuseRounded } from '../../errors/refused-field.ts'
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from '../../kubernetes/names.ts'
import { clusterErrors } from '../codes.ts'
import type { PreflightProblem } from './preflight-codes.ts'
import type { ClusterConfiguration, EdgeMachinePoolConfig } from '../schemas.ts'
import type { Taint, DesiredNode, DesiredSettings } from './desired-state.ts'
import { prefixLengthOf } from '../../base/subnet.ts'
import { readHostSettings } from './host-settings.ts'
import { masked } from '../../base/mask.ts'
import type { Prepared, PreparedVariable } from './prepared.ts'

// More than a configuration has; a body may be nested more deeply than a function can call itself.
const deepest = 32

/**
 * One text for all bodies that mean the same: keys in order, and without unset values: empty text, an empty list or object, and null.
 * @throws AppError BadRequest for a body that is nested too deeply
 */
export function canonicalText(value: unknown): string {
  return JSON.stringify(settled(value) ?? {})
}

/** @returns undefined for an unset value */
function settled(value: unknown, depth = 0): unknown {
  if (depth > deepest)
    throw new AppError(generalErrors.BadRequest, `the body is nested more than ${deepest} levels deep`)
  if (value === null || value === '') return undefined
  if (Array.isArray(value))
    return value.length === 0 ? undefined : value.map((each) => settled(each, depth + 1) ?? null)
  if (typeof value !== 'object') return value
  const entries = Object.entries(value)
    .map(([key, each]) => [key, settled(each, depth + 1)] as const)
    .filter(([, each]) => each !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Name of the pool of a cluster where none is given. */
export const usualPoolName = 'control-plane-pool'

/** Facts of this host that decide about its node. */
export interface HostFacts {
  readonly id: string
  readonly hostName: string
  /** As OCI names it. */
  readonly architecture: string
  readonly nics: readonly HostNic[]
  /** All addresses of this host. */
  readonly addresses: readonly string[]
}

interface HostNic {
  readonly nicName: string
  readonly ip?: string
  /** IPv4: dotted mask. IPv6: length of the prefix. */
  readonly subnet?: string
  readonly gateway?: string
  readonly macAddr?: string
  readonly dns?: readonly string[]
  readonly isDefault: boolean
  readonly isManagement?: boolean
}

/** The posted configuration, parsed. */
interface ReadConfiguration {
  readonly name: string
  readonly archiveUploadPath: string
  readonly variables: readonly GivenVariable[]
  readonly node: Omit<DesiredNode, 'endpoint' | 'virtualAddress'>
  /** Address of the control plane as it was posted; empty: this host's. */
  readonly endpoint: string
  readonly settings: DesiredSettings
  /** Its findings for the pre-flight. */
  readonly problems: readonly PreflightProblem[]
}

const cloudPath = 'spec.cloudConfig.spec'
const poolPath = `${cloudPath}.machinePoolConfig[0]`
const hostPath = `${poolPath}.hosts[0]`
const clusterPath = `${cloudPath}.clusterConfig`

/**
 * Reads the posted configuration of one host. Pure.
 * @throws AppError BadRequest that names the field; NeedsLinkedHosts
 */
export function readConfiguration(
  { metadata = {}, spec = {} }: ClusterConfiguration,
  facts: HostFacts,
): ReadConfiguration {
  const { name = '' } = metadata
  const { archiveUploadPath = '', scheduleAt = '', cloudConfig = {} } = spec
  const { clusterConfig = {}, machinePoolConfig: pools = [] } = cloudConfig.spec ?? {}
  if (!isDnsLabel(name))
    throw refusedField(
      'metadata.name',
      name === ''
        ? 'is missing: name the cluster'
        : 'must be 1 to 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
    )
  if (archiveUploadPath === '')
    throw refusedField('spec.archiveUploadPath', 'is missing: it names the definition')
  if (scheduleAt !== '')
    throw refusedField(
      'spec.scheduleAt',
      'must be empty, since a delayed start is not possible: leave it out, and send the request when the cluster shall be created',
    )
  refuseRounded(metadata.tags, 'metadata.tags')
  refuseSeveralHosts(clusterConfig, pools)
  refuseRounded(pools[0]?.hosts[0]?.tags, `${hostPath}.tags`)
  refuseOtherHost(pools[0]?.hosts[0] ?? {}, facts)

  const [pool = { hosts: [] }] = pools
  const problems: PreflightProblem[] = []
  const address = addressOf(pool, facts, problems)
  return {
    name,
    archiveUploadPath,
    problems,
    endpoint: endpointOf(clusterConfig.controlPlaneEndpoint ?? {}),
    settings: readHostSettings(clusterConfig, `${clusterPath}.`),
    variables: givenIn(spec),
    node: { ...nodeOf(pool, facts), address },
  }
}

/** The values of variables that were posted. */
export const givenIn = ({ profileVariables = [] }: NonNullable<ClusterConfiguration['spec']>) =>
  profileVariables.map(({ name = '', profileUid = '', value = '' }): GivenVariable => ({
    name,
    profileUid,
    value,
  }))

type ClusterConfig = NonNullable<
  NonNullable<NonNullable<NonNullable<ClusterConfiguration['spec']>['cloudConfig']>['spec']>['clusterConfig']
>

function refuseSeveralHosts(
  { isTwoNodeCluster, overlayNetworkConfiguration: overlay = {} }: ClusterConfig,
  pools: readonly EdgeMachinePoolConfig[],
): void {
  if (isTwoNodeCluster === true) throw linked(`${clusterPath}.isTwoNodeCluster`)
  if (overlay.enable === true || (overlay.cidr ?? '') !== '')
    throw linked(`${clusterPath}.overlayNetworkConfiguration`)
  if (pools.length > 1) throw linked(`${cloudPath}.machinePoolConfig[1]`)
  const [pool] = pools
  if (!pool) return
  if (pool.hosts.length > 1) throw linked(`${poolPath}.hosts[1]`)
  if ((pool.size ?? 0) < 0)
    throw refusedField(`${poolPath}.size`, 'must be 1 or absent: the pool has this host only')
  if ((pool.size ?? 0) > 1) throw linked(`${poolPath}.size`)
  if ((pool.hosts[0]?.twoNodeCandidatePriority ?? '') !== '')
    throw linked(`${hostPath}.twoNodeCandidatePriority`)
}

/** The id of a host has two spellings in the API. */
function refuseOtherHost(
  { hostUid = '', hostID = '' }: EdgeMachinePoolConfig['hosts'][number],
  { id }: HostFacts,
) {
  if (hostUid !== '' && hostID !== '' && hostUid !== hostID)
    throw refusedField(
      `${hostPath}.hostID`,
      'differs from hostUid, which names the same host: send one of both',
    )
  for (const [field, given] of Object.entries({ hostUid, hostID }))
    if (given !== '' && given !== id)
      throw linked(`${hostPath}.${field}`, `send the id of this host, ${id}, or leave it empty`)
}

function nodeOf(
  pool: EdgeMachinePoolConfig,
  facts: HostFacts,
): Omit<DesiredNode, 'address' | 'endpoint' | 'virtualAddress'> {
  const { name: poolName = '', additionalLabels = {}, machinePoolProperties = {} } = pool
  if (pool.isControlPlane === false)
    throw refusedField(`${poolPath}.isControlPlane`, 'must be true: the only pool is the control plane')
  if (pool.useControlPlaneAsWorker === false)
    throw refusedField(
      `${poolPath}.useControlPlaneAsWorker`,
      'must be true: there is no other pool on which workloads could run',
    )
  const { archType = '' } = machinePoolProperties
  if (archType !== '' && archType !== facts.architecture)
    throw refusedField(
      `${poolPath}.machinePoolProperties.archType`,
      `must be ${facts.architecture}, as this host is, or empty`,
    )
  const { hostName = '' } = pool.hosts[0] ?? {}
  if (hostName !== '' && (hostName.length > 63 || !isDnsSubdomain(hostName)))
    throw refusedField(
      `${hostPath}.hostName`,
      'must be a name of a node: at most 63 lower-case letters, digits, hyphens and dots',
    )
  for (const [key, value] of Object.entries(additionalLabels)) refuseLabel(key, value)
  if (!isLabelValue(poolName))
    throw refusedField(
      `${poolPath}.name`,
      'must be at most 63 letters, digits, hyphens, dots and underscores',
    )
  const taints = (pool.taints ?? []).map(taintOf)
  const marks = taints.map(({ key, effect }) => `${key}:${effect}`)
  const again = marks.findIndex((mark, index) => marks.indexOf(mark) < index)
  if (again !== -1)
    throw refusedField(`${poolPath}.taints[${again}]`, 'has the key and the effect of another taint')
  return {
    name: hostName || facts.hostName.toLowerCase(),
    poolName: poolName || usualPoolName,
    labels: additionalLabels,
    taints,
    runsWorkloads: true,
  }
}

// Set by the kubelet, which takes back changes, and by kubeadm.
const ownLabels = new Set([
  ...['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch'],
  ...['beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'node-role.kubernetes.io/control-plane'],
])

function refuseLabel(key: string, value: string): void {
  const path = `${poolPath}.additionalLabels[${JSON.stringify(key)}]`
  if (!isQualifiedName(key)) throw refusedField(path, 'must have the name of a Kubernetes label')
  if (!isLabelValue(value)) throw refusedField(path, 'must have the value of a Kubernetes label')
  if (ownLabels.has(key))
    throw refusedField(
      path,
      'is a label that Kubernetes itself gives the node; leave it out, or take another name',
    )
}

function taintOf(
  { key = '', value = '', effect }: NonNullable<EdgeMachinePoolConfig['taints']>[number],
  index: number,
): Taint {
  const path = `${poolPath}.taints[${index}]`
  if (!isQualifiedName(key)) throw refusedField(`${path}.key`, 'must be a name of a Kubernetes taint')
  if (!isLabelValue(value)) throw refusedField(`${path}.value`, 'must be a value of a Kubernetes taint')
  if (effect === undefined || effect === '')
    throw refusedField(`${path}.effect`, 'must be NoSchedule, PreferNoSchedule or NoExecute')
  return { key, value, effect }
}

type GivenHost = EdgeMachinePoolConfig['hosts'][number]
type GivenNic = NonNullable<GivenHost['nic']>

/** The address of this host for Kubernetes: the given one, or the one of the given interface, of the management interface or of the default route. */
function addressOf(pool: EdgeMachinePoolConfig, facts: HostFacts, problems: PreflightProblem[]): string {
  const host = pool.hosts[0] ?? {}
  const error = (path: string, message: string) =>
    void problems.push({ code: 'AddressInvalid', severity: 'error', path, message })
  const { networkInfo: [first = {}, ...others] = [], nic: second = {}, nicName: third = '' } = host
  const nicName = first.nicName || second.nicName || third
  const named = facts.nics.find((nic) => nic.nicName === nicName && nic.ip !== undefined)
  if (nicName !== '' && !named)
    error(hostPath, `the interface ${JSON.stringify(nicName)} does not exist on this host, or has no address`)
  const withAddress = facts.nics.filter(({ ip }) => ip !== undefined)
  const nic =
    named ??
    withAddress.find(({ isManagement }) => isManagement) ??
    withAddress.find(({ isDefault }) => isDefault) ??
    withAddress[0]

  const own = new Set(facts.addresses.map(canonicalAddress))
  const given = Object.entries({
    hostAddress: host.hostAddress ?? '',
    'networkInfo[0].ip': first.ip ?? '',
    'nic.ip': second.ip ?? '',
    staticIP: host.staticIP ?? '',
  }).flatMap(([field, text]) => (text === '' ? [] : [{ field, address: plainAddress(text) }]))
  for (const { field, address } of given)
    if (!own.has(address))
      error(
        `${hostPath}.${field}`,
        `${field} is no address of this host; it has: ${[...own].join(', ') || 'none'}`,
      )
    else if (address !== given[0]?.address)
      error(`${hostPath}.${field}`, `${field} differs from ${given[0]?.field}; send one of both`)
  if (nic) {
    requireAsIs(first, nic, `${hostPath}.networkInfo[0]`, error)
    requireAsIs(second, nic, `${hostPath}.nic`, error)
  }
  others.forEach((entry, index) => {
    const other = facts.nics.find((each) => each.nicName === entry.nicName)
    if (other) requireAsIs(entry, other, `${hostPath}.networkInfo[${index + 1}]`, error)
  })
  const [chosen] = given
  if (chosen && own.has(chosen.address)) return chosen.address
  if (nic?.ip) return nic.ip
  error(hostPath, 'this host has no address for Kubernetes; give one to an interface')
  return ''
}

/** Given fields of an interface have to be as they are, but for its address, since nothing here would change them. */
function requireAsIs(
  given: GivenNic,
  nic: HostNic,
  path: string,
  error: (path: string, message: string) => void,
): void {
  const say = (field: string, is: string) =>
    error(
      `${path}.${field}`,
      `${field} of the interface ${nic.nicName} is ${is || 'not set'} on this host, and a cluster does not change that; send it so, or leave it out`,
    )
  const fields = {
    subnet: prefixLengthOf,
    gateway: plainAddress,
    macAddr: (text: string) => text.toLowerCase(),
  } as const
  for (const [field, spell] of Object.entries(fields) as [keyof typeof fields, (text: string) => string][]) {
    const text = given[field] ?? ''
    const is = nic[field] ?? ''
    if (text !== '' && spell(text) !== spell(is)) say(field, is)
  }
  const { dns = [] } = nic
  const servers = new Set(dns.map(plainAddress))
  if ((given.dns ?? []).some((server) => server !== '' && !servers.has(plainAddress(server))))
    say('dns', dns.join(', '))
  if (given.isDefault === true && !nic.isDefault) say('isDefault', 'false')
}

/** An address without the length of its prefix, in its one spelling. */
function plainAddress(text: string): string {
  const [address = ''] = text.trim().split('/')
  return isAddress(address) ? canonicalAddress(address) : address
}

/** The posted address of the control plane; empty stands for this host's. */
function endpointOf({
  host = '',
  type = '',
  ddnsSearchDomain = '',
}: NonNullable<ClusterConfig['controlPlaneEndpoint']>): string {
  const path = `${clusterPath}.controlPlaneEndpoint`
  if (!['', 'vip'].includes(type.toLowerCase())) throw refusedField(`${path}.type`, 'must be VIP or empty')
  if (ddnsSearchDomain !== '') throw refusedField(`${path}.ddnsSearchDomain`, 'must be empty')
  return host.trim()
}

const linked = (field: string, advice = 'leave one pool with this host only') =>
  new AppError(
    clusterErrors.NeedsLinkedHosts,
    `${field} needs hosts that are linked with this one; ${advice}`,
    { details: { field } },
  )

/** The posted configuration, with the values of sensitive variables masked. */
export function maskConfiguration(
  posted: ClusterConfiguration,
  variables: readonly PreparedVariable[],
): ClusterConfiguration {
  const { spec } = posted
  if (!spec?.profileVariables) return posted
  const isSensitive = (name: string, uid: string) =>
    variables.some(
      (each) => each.name === name && each.isSensitive && (uid === '' || each.profileUid === uid),
    )
  return {
    ...posted,
    spec: {
      ...spec,
      profileVariables: spec.profileVariables.map((given) =>
        (given.value ?? '') !== '' && isSensitive(given.name ?? '', given.profileUid ?? '')
          ? { ...given, value: masked }
          : given,
      ),
    },
  }
}

/** Values of sensitive variables that may not be shown anywhere. */
export const sensitiveValues = ({
  variables,
  derived,
}: Pick<Prepared, 'variables' | 'derived'>): readonly string[] => [
  ...new Set([
    ...variables.flatMap(({ isSensitive, value }) => (isSensitive && value !== '' ? [value] : [])),
    ...derived,
  ]),
]
