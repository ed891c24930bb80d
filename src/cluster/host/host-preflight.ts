import { isIP } from 'node:net'
import { canonicalAddress, isLoopback } from '../../base/address.ts'
import { printable } from '../../base/printable.ts'
import { addressOfServer, parseResolvConf, resolvedService } from '../../host/network/dns.ts'
import { passRefused, type HostFiles } from '../../host/files.ts'
import { isServiceRunning } from '../../host/services.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { KubernetesSettings } from './kubernetes-settings.ts'
import { isInSubnet } from '../../base/subnet.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import { findAnsweringDevice } from '../../host/network/answering-device.ts'
import { endpointPath } from './address.ts'
import { readHostFacts, type HostFactsOptions } from './host-facts.ts'
import { judgeHost, judgeHostAlone, judgeHostOfChange } from './judge-host.ts'

/** The file from which the kubelet gives pods their name servers: upstreams of CoreDNS. */
interface Resolver {
  readonly path: string
  /** Whether systemd-resolved writes it. */
  readonly isOfResolved: boolean
  /** Whether the Kubernetes pack names it. */
  readonly isOfPack: boolean
  /** Undefined where there is no such file. */
  readonly text: string | undefined
  /** Object in its place, a sentence that begins with the path; undefined for none. */
  readonly refused?: string | undefined
}

const usualPath = '/etc/resolv.conf'
const resolvedPath = '/run/systemd/resolve/resolv.conf'
// validation.MaxDNSNameservers of Kubernetes: the kubelet leaves out further ones.
const mostServers = 3
const unspecified = new Set(['0.0.0.0', '::'])

/**
 * Reads the file that the kubelet will use: the pack's; otherwise kubeadm names the one of systemd-resolved where it runs
 * (componentconfigs/kubelet.go), and the kubelet takes /etc/resolv.conf.
 */
export async function readResolver(
  files: HostFiles,
  { resolvConf }: Pick<KubernetesSettings, 'resolvConf'>,
): Promise<Resolver> {
  const isOfResolved = resolvConf === undefined && (await isServiceRunning(files, resolvedService))
  const path = resolvConf ?? (isOfResolved ? resolvedPath : usualPath)
  const read = passRefused(files)
  const text = path === '' ? undefined : await read.files.text(path)
  return { path, isOfResolved, isOfPack: resolvConf !== undefined, text, refused: read.problems[0] }
}

/**
 * Judges whether the pods of CoreDNS get a name server with which they run: without one CoreDNS ends at once, and one that leads back to
 * itself is a loop, which ends it too (its plugins forward and loop). Whether a server answers is of no importance. Pure.
 */
export function judgeResolver(
  resolver: Resolver,
  { services, hasCoreDns }: Pick<KubernetesSettings, 'services' | 'hasCoreDns'>,
): readonly PreflightProblem[] {
  const { path, isOfResolved, isOfPack, text, refused } = resolver
  const problem = (severity: PreflightProblem['severity'], what: string): readonly PreflightProblem[] => [
    { code: 'ResolverUnusable', severity, message: `${what}; ${adviceFor(resolver)}` },
  ]
  const severity = hasCoreDns ? 'error' : 'warning'
  if (path === '')
    return problem(
      severity,
      'kubeletConfiguration.resolvConf is empty: pods, CoreDNS too, then ask themselves',
    )
  const place = isOfPack ? `${path}, named by kubeletConfiguration.resolvConf,` : path
  if (text === undefined)
    return problem(
      'error',
      `${refused ?? `${place} is not on this host`}, and without it the kubelet starts no pod`,
    )
  const given = serversOfKubelet(text)
  if (given.includes(''))
    return problem(
      'error',
      `${place} has a line "nameserver" without an address, and with it the kubelet starts no pod`,
    )
  const servers = given.slice(0, mostServers)
  // CoreDNS dials them as Go reads addresses, which knows none of the short forms of the C library.
  const usable = servers.filter((server) => isIP(server) !== 0).map(canonicalAddress)
  const leadsBack = (address: string) =>
    isLoopback(address) || unspecified.has(address) || services.some((subnet) => isInSubnet(address, subnet))
  const back = usable.filter(leadsBack)
  if (usable.length === 0) {
    const invalid = servers.length === 0 ? '' : ` (${servers.map(saidOf).join(', ')})`
    const what = isOfResolved
      ? `systemd-resolved has no name server (${path})`
      : `${place} names no name server`
    // With lines that are no address it starts, and can ask none of them.
    const outcome = servers.length === 0 ? 'and CoreDNS ends without one' : 'and CoreDNS has none to ask'
    return problem(severity, `${what}${invalid}, ${outcome}`)
  }
  if (back.length === 0) {
    const others = isOfPack || isOfResolved ? [] : onlyOfPods(text, usable)
    if (others.length === 0) return []
    return problem(
      'warning',
      `${place}: ${others.join(' and ')} counts for pods and not for this host itself, whose C library takes no line with a carriage return at its end or a blank before it`,
    )
  }
  const isAll = back.length === usable.length
  const rest = given.length > mostServers ? `; the kubelet takes the first ${mostServers} only` : ''
  return problem(
    isAll ? severity : 'warning',
    `${isAll ? 'the only name server' : 'a name server'} of ${place} is ${back.join(' and ')}${rest}: in its pod CoreDNS would ask itself, and ends because of that loop`,
  )
}

function adviceFor({ isOfResolved, isOfPack }: Resolver): string {
  const server = 'of another machine, which need not answer'
  if (isOfPack) return `name a file with a name server ${server} there, or leave resolvConf out`
  return isOfResolved
    ? `name a server ${server}, with DNS= in /etc/systemd/resolved.conf or for a link, and restart systemd-resolved; or name a file with one in kubeletConfiguration.resolvConf of the Kubernetes pack`
    : `write a line "nameserver ADDRESS" ${server} into it, or name another file in kubeletConfiguration.resolvConf of the Kubernetes pack`
}

/** Servers of pods that programs of this host do not use: the C library reads the same lines more strictly. */
function onlyOfPods(text: string, servers: readonly string[]): readonly string[] {
  const own = parseResolvConf(text).nameservers.map((server) =>
    canonicalAddress(addressOfServer(server) ?? server),
  )
  return servers.filter((server) => !own.includes(server))
}

/**
 * Servers as the kubelet reads them (network/dns/dns.go): blanks around a line do not count, and no value is judged. A byte order mark is
 * no blank to it, as it is to JavaScript.
 */
const serversOfKubelet = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => {
    const [keyword, server = ''] = line
      .split(/[^\S\ufeff]+/)
      .filter((word, index) => index > 0 || word !== '')
    return keyword === 'nameserver' ? [server] : []
  })

/** Problem of a server that CoreDNS cannot ask. */
function saidOf(server: string): string {
  const quoted = JSON.stringify(printable(server))
  const address = addressOfServer(server)
  return address === undefined
    ? `${quoted} is no address`
    : `${quoted} is an address for the C library only: write ${address}`
}

/** The checks of this host before a cluster; all at once, and nothing is changed. */
export function createHostPreflight(options: HostFactsOptions) {
  return async (
    desired: DesiredState,
    signal: AbortSignal,
    running?: DesiredState,
  ): Promise<readonly PreflightProblem[]> => {
    const attempt = async (what: string, check: () => Promise<readonly PreflightProblem[]>) => {
      try {
        return await check()
      } catch (error) {
        signal.throwIfAborted()
        const message = `${what} could not be checked: ${(error as Error).message}`
        return [{ code: 'CheckFailed', severity: 'error', message } as const]
      }
    }
    const found = await Promise.all([
      attempt('this host', async () => {
        // Loaded with the first cluster: a start does not need yaml.
        const { kubernetesSettings } = await import('./kubernetes-settings.ts')
        const settings = kubernetesSettings(desired.kubernetes.config)
        const [facts, resolver] = await Promise.all([
          readHostFacts(options),
          readResolver(options.files, settings),
        ])
        const ofResolver = judgeResolver(resolver, settings)
        if (!running) return [...judgeHost(facts, desired, settings), ...ofResolver]
        // A cluster that runs has to be changed also where its names are not resolved.
        const warnings = ofResolver.map((each) => ({ ...each, severity: 'warning' as const }))
        return [...judgeHostOfChange(facts, desired, running, settings), ...warnings]
      }),
      // The cluster itself has it already.
      running
        ? []
        : attempt('the address of the control plane', () => judgeAddress(desired, options, signal)),
    ])
    return found.flat()
  }
}

/**
 * Needs of a cluster that this host does not meet, beside a definition; it changes nothing, and starts at most chronyc.
 * @param running the cluster of this host; undefined without one
 */
export async function readLacking(
  options: HostFactsOptions,
  running: Pick<DesiredState, 'kubernetes'> | undefined,
): Promise<readonly PreflightProblem[]> {
  const { kubernetesSettings } = await import('./kubernetes-settings.ts')
  const settings = kubernetesSettings(running?.kubernetes.config ?? '')
  const [facts, resolver] = await Promise.all([
    readHostFacts(options, false),
    readResolver(options.files, settings),
  ])
  const found = running ? judgeHostOfChange(facts, running, running, settings) : judgeHostAlone(facts)
  // Other warnings stay for years, as a clock that nothing sets: the pre-flight says them.
  const isLack = ({ code, severity }: PreflightProblem) =>
    severity === 'error' || code === 'HostProgramMissing' || code === 'DiskSpaceLow'
  return [...found, ...judgeResolver(resolver, settings)].filter(isLack)
}

async function judgeAddress(
  { node: { virtualAddress } }: DesiredState,
  options: HostFactsOptions,
  signal: AbortSignal,
): Promise<readonly PreflightProblem[]> {
  if (!virtualAddress) return []
  const device = await findAnsweringDevice(virtualAddress, options, signal)
  if (device === undefined) return []
  return [
    {
      code: 'EndpointTaken',
      severity: 'error',
      message: `a device with the hardware address ${device} has the address ${virtualAddress.address} already (interface ${virtualAddress.networkInterface}); take a free one`,
      path: endpointPath,
    },
  ]
}
