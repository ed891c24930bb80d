import { kubernetesFile, type ExaminedKubernetes } from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { KeptFolders } from '../kept-folders.ts'
import type { ClusterTemplate, ClusterProblem } from './schemas.ts'
import type { ClusterRecord, Configuration, Pool } from './store.ts'
import { canonicalAddress } from '../../base/address.ts'
import { judgeEndpoint, saidOfEndpoint } from '../../cluster/host/endpoint.ts'
import { networkOf, parseSubnet, prefixLengthOf, type Subnet } from '../../base/subnet.ts'
import { readConfiguration, type HostFacts } from '../../cluster/desired/configuration.ts'
import { skewOf } from '../../cluster/desired/version.ts'
import type { ClusterConfiguration } from '../../cluster/schemas.ts'
import type { HostRecord } from '../hosts/store.ts'

/** The packs that a host cannot exchange for others: of Kubernetes, and of its network. */
export interface RunningPacks {
  readonly kubernetes?: { readonly name: string; readonly version: string }
  readonly network?: { readonly name: string }
  /** With its settings, where the host has applied all of its desired state. */
  readonly configured?: ExaminedKubernetes
}

/** The first pack of a layer. */
const packOf = (templates: readonly ClusterTemplate[], layer: string) =>
  templates.flatMap(({ packs }) => packs).find((pack) => pack.layer === layer)

/** Whether the host has applied all of its desired state. Pure. */
const hasApplied = ({ conditions, number }: Pick<ClusterRecord, 'conditions' | 'number'>): boolean =>
  conditions.some(
    ({ type, reason, observedGeneration }) =>
      type === 'Wanted' && reason === 'Applied' && observedGeneration === number,
  )

/** Running packs of a cluster: as its host has reported, or has applied last; empty where neither is known. Pure. */
function runningPacks({
  packs,
  templates,
  conditions,
  number,
}: Pick<ClusterRecord, 'packs' | 'templates' | 'conditions' | 'number'>): RunningPacks {
  const isApplied = hasApplied({ conditions, number })
  const running = (layer: string) => {
    const pack = packOf(templates, layer)
    const reported = packs.find(({ name }) => name === pack?.name)?.version
    if (!pack || (reported === undefined && !isApplied)) return undefined
    return { name: pack.name, version: reported ?? pack.version ?? pack.tag }
  }
  const [kubernetes, network] = [running('k8s'), running('cni')]
  return { ...(kubernetes ? { kubernetes } : {}), ...(network ? { network } : {}) }
}

/** The same with the settings of Kubernetes, where the host has applied the last build. @param folders of the clusters */
export async function readRunning(
  cluster: ClusterRecord,
  folders: Pick<KeptFolders, 'open'>,
): Promise<RunningPacks> {
  const running = runningPacks(cluster)
  if (cluster.filesUid === '' || !hasApplied(cluster)) return running
  const configured = await readKubernetes(folders, cluster.filesUid)
  return { ...running, ...(configured ? { configured } : {}) }
}

/** The settings of Kubernetes of a cluster that was built; undefined where an earlier version has built it. */
async function readKubernetes(
  folders: Pick<KeptFolders, 'open'>,
  filesUid: string,
): Promise<ExaminedKubernetes | undefined> {
  try {
    await using file = await folders.open(filesUid, kubernetesFile)
    return JSON.parse(await file.readFile('utf8')) as ExaminedKubernetes
  } catch (error) {
    if (error instanceof AppError && error.kind === generalErrors.NotFound) return undefined
    throw error
  }
}

/**
 * Problems for which the host will refuse a configuration, by its own rules. These stop at the first problem, so each part is given to them alone. Pure.
 * @param host as it has reported itself; undefined where no host is known: then all is checked that does not depend on it
 */
export function configurationProblems(
  configuration: Configuration,
  host: HostRecord | undefined,
): ClusterProblem[] {
  const { clusterConfig, machinePoolConfig } = configuration.spec.cloudConfig.spec
  const [{ hosts, ...whole }] = machinePoolConfig
  const [{ nic, staticIP, ...named }] = hosts
  // An interface is judged as a whole, and only where it is known.
  const node = host ? { ...named, ...(nic ? { nic } : {}), ...(staticIP ? { staticIP } : {}) } : named
  const facts = host ? factsOf(host) : factsOfNone(named)
  const { machinePoolProperties, ...rest } = whole
  const pool = host ? { machinePoolProperties, ...rest } : rest
  const parts: ClusterConfiguration[] = [
    { metadata: { name: configuration.metadata.name }, spec: definition },
    ...partsOf(clusterConfig).map((part) => withSpec({ clusterConfig: part })),
    ...partsOf(pool).map((part) => withSpec({ machinePoolConfig: [{ hosts: [], ...part }] })),
    ...partsOf(named).map((part) => withSpec({ machinePoolConfig: [{ hosts: [part] }] })),
    withSpec({ machinePoolConfig: [{ hosts: [node] }] }),
  ]
  const found = [
    ...parts.flatMap((part) => problemsOf(part, facts)),
    ...endpointProblems(clusterConfig.controlPlaneEndpoint?.host ?? '', facts, host),
  ]
  return [...new Map(found.map((problem) => [`${problem.path}\0${problem.message}`, problem])).values()]
}

/** Each field alone, and of a field with several entries also each of these. */
const partsOf = (whole: object): readonly object[] =>
  Object.entries(whole).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [value, ...entriesOf(value)].map((part) => ({ [name]: part })),
  )

/** Each entry of a list at its place, where the others are such that nothing is wrong with them, or each field of an object. */
function entriesOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if (!Array.isArray(value))
    return Object.entries(value).map(([name, field]) => ({ [name]: field as unknown }))
  const others = (value as unknown[]).map((entry, at) =>
    typeof entry === 'string' ? '' : { key: `other-${at}`, effect: 'NoSchedule' },
  )
  return (value as unknown[]).map((entry, at) => others.with(at, entry as never))
}

const definition = { archiveUploadPath: 'of the platform' }
const withSpec = (
  spec: NonNullable<NonNullable<NonNullable<ClusterConfiguration['spec']>['cloudConfig']>['spec']>,
): ClusterConfiguration => ({ metadata: { name: 'any' }, spec: { ...definition, cloudConfig: { spec } } })

function problemsOf(part: ClusterConfiguration, facts: HostFacts): ClusterProblem[] {
  try {
    return readConfiguration(part, facts).problems.map(({ code, severity, message, path }) => ({
      code,
      severity,
      message: asSent(message),
      ...(path === undefined ? {} : { path: asSent(path) }),
    }))
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const path = error.details?.field
    return [
      {
        code: error.kind === generalErrors.BadRequest ? 'FieldInvalid' : error.code,
        severity: 'error',
        message: asSent(error.message),
        ...(typeof path === 'string' ? { path: asSent(path) } : {}),
      },
    ]
  }
}

/** A host may have networks that it has not reported. An address that is in none of the reported ones is a warning: only the host can refuse it. */
function endpointProblems(
  given: string,
  { addresses }: HostFacts,
  host: HostRecord | undefined,
): ClusterProblem[] {
  const networks = host ? networksOf(host) : []
  const judged = judgeEndpoint(given.trim(), {
    called: host ? `the host ${host.name}` : 'its host',
    addresses: new Set(addresses.map(canonicalAddress)),
    networks,
  })
  if (judged.kind === 'own' || judged.kind === 'within') return []
  if (judged.kind === 'elsewhere' && networks.length === 0) return []
  return [
    {
      code: 'EndpointInvalid',
      severity: judged.kind === 'unusable' ? 'error' : 'warning',
      message: saidOfEndpoint(given.trim(), judged.reason),
      path: 'spec.cloudConfig.controlPlaneEndpoint.host',
    },
  ]
}

/** The networks of the addresses that a host has reported. */
export const networksOf = ({ reported }: HostRecord): readonly HostNetwork[] =>
  (reported.device.nics ?? []).flatMap(({ ip = '', subnet: mask = '', nicName = '' }) => {
    const subnet = parseSubnet(ip.includes('/') ? ip : `${ip}/${prefixLengthOf(mask)}`)
    return subnet ? [{ subnet: networkOf(subnet), networkInterface: nicName }] : []
  })

interface HostNetwork {
  readonly subnet: Subnet
  readonly networkInterface: string
}

/** The address that the host will take for its node; empty where that cannot be known. */
export function nodeAddressOf({ spec }: Configuration, host: HostRecord): string {
  const [{ hosts }] = spec.cloudConfig.spec.machinePoolConfig
  try {
    return readConfiguration(withSpec({ machinePoolConfig: [{ hosts: [...hosts] }] }), factsOf(host)).node
      .address
  } catch (error) {
    if (error instanceof AppError) return ''
    throw error
  }
}

/** The platform's API has other places for the same. */
const asSent = (text: string) =>
  text
    .replaceAll('spec.cloudConfig.spec.clusterConfig', 'spec.cloudConfig')
    .replaceAll(
      'spec.cloudConfig.spec.machinePoolConfig[0].hosts',
      'spec.machinepoolconfig[0].cloudConfig.edgeHosts',
    )
    .replaceAll('spec.cloudConfig.spec.machinePoolConfig[0]', 'spec.machinepoolconfig[0].poolConfig')

function factsOf({ hostUid, name, reported }: HostRecord): HostFacts {
  const { archType = '', nics: known = [] } = reported.device
  const nics = known.map(({ nicName = '', ip, isDefault = false, ...rest }) => ({
    ...rest,
    nicName,
    isDefault,
    // As hosts report it, with the length of the prefix or without.
    ...(ip === undefined || ip === '' ? {} : { ip: ip.replace(/\/\d+$/, '') }),
  }))
  const own = { nicName: '', ip: reported.hostAddress, isDefault: true }
  return {
    id: hostUid,
    hostName: name,
    architecture: archType,
    // A host that has not reported its interfaces has at least the address that it registered with.
    nics: nics.some(({ ip }) => ip !== undefined) ? nics : [...nics, own],
    addresses: [reported.hostAddress, ...nics.flatMap(({ ip }) => ip ?? [])],
  }
}

/** Facts that pass every rule that depends on the host. */
const factsOfNone = ({ hostUid, nicName = '' }: Pool['hosts'][0]): HostFacts => ({
  id: hostUid,
  hostName: 'any',
  architecture: '',
  addresses: [],
  nics: [{ nicName, ip: '192.0.2.1', isDefault: true }],
})

const versionIn = (text: string) => /^v?(\d+\.\d+\.\d+)/.exec(text)?.[1]

/** Problems of other packs, by the rules of the host: an older Kubernetes, one that leaves a minor version out, and packs of another name. Pure. */
export function packProblems(
  templates: readonly ClusterTemplate[],
  { kubernetes, network }: RunningPacks = {},
): ClusterProblem[] {
  const found: ClusterProblem[] = []
  const add = (code: string, pack: string, message: string) =>
    found.push({ code, severity: 'error', message, pack, path: 'spec.profiles' })
  const next = packOf(templates, 'k8s')
  if (next && kubernetes) {
    if (next.name !== kubernetes.name)
      add(
        'CannotChange',
        next.name,
        `the cluster is made by the pack ${kubernetes.name}, not by ${next.name}; take a profile with it`,
      )
    const [from, to] = [versionIn(kubernetes.version), versionIn(next.version ?? next.tag)]
    const skew = from === undefined || to === undefined ? undefined : skewOf(from, to)
    if (skew !== undefined) add('VersionSkew', next.name, skew)
  }
  const cni = packOf(templates, 'cni')
  if (cni && network && cni.name !== network.name)
    add(
      'CannotChange',
      cni.name,
      `the network of the cluster is made by the pack ${network.name}, not by ${cni.name}; take a profile with it`,
    )
  return found
}
