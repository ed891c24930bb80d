import type { NewClusterEvent } from '../events/event-log.ts'
import { shortDuration } from '../../base/time.ts'
import type { TroubleReason } from '../schemas.ts'
import { troublesOf, type Observed, type PackTrouble, type SettingObserved } from './observed.ts'
import { troubleOf, type ClusterStatus, type Deadline } from './status.ts'
import type { DesiredState } from '../desired/desired-state.ts'

/** Observations already emitted as events; stored, so that a restart emits nothing twice. */
export interface Seen {
  readonly isHostRecorded?: boolean
  readonly isRemoved?: boolean
  readonly damaged?: readonly string[]
  /** Certificates and authorities that were reported to end. */
  readonly endingCertificates?: readonly string[]
  readonly endingAuthorities?: readonly string[]
  readonly isAddressHeld?: boolean
  /** Last reported state of the settings of the host: empty where it has none of the cluster. */
  readonly ntpServers?: string
  readonly sshKeys?: string
  readonly containerd?: boolean
  readonly kubelet?: boolean
  readonly controlPlane?: boolean
  readonly api?: boolean
  readonly node?: boolean
  /** Digest with which a pack was reported as applied, and then available, by id. */
  readonly applied?: Readonly<Record<string, string>>
  readonly available?: Readonly<Record<string, string>>
  readonly allAvailable?: boolean
  readonly phase?: string
  readonly isStuck?: boolean
  /** Why it is unhealthy; empty while it is healthy. */
  readonly unhealthy?: string
  /** Reported troubles of pods. */
  readonly troubles?: readonly SeenTrouble[]
}

/** A reported trouble of the pods of a workload, whichever of them has it. */
interface SeenTrouble {
  /** `id` of the pack; empty for CoreDNS and kube-proxy. */
  readonly pack: string
  readonly reason: TroubleReason
  /** Namespace and workload, or pod. */
  readonly of: string
  readonly container: string
  /** Since when, RFC 3339: what Kubernetes says begins anew with each start of a container. Absent in what an earlier version has stored. */
  readonly since?: string
  /** Revision during which it was last reported; absent in what an earlier version has stored. */
  readonly generation?: number
  /** Since when it is not observed any more, milliseconds since 1970; absent while it is. */
  readonly goneAt?: number
}

export type SeenEvent = Pick<NewClusterEvent, 'reason' | 'message' | 'object'>

/** Compares the observed state with the emitted one. Pure. @returns the events to add, and the new emitted state */
export function tell(
  before: Seen,
  {
    desired,
    observed,
    status,
    isDeleting,
    stuck,
    deadline,
    now,
  }: {
    readonly desired: DesiredState
    readonly observed: Observed
    readonly status: ClusterStatus
    readonly isDeleting: boolean
    /** Why it cannot be taken back to its last good revision; empty otherwise. */
    readonly stuck: string
    readonly deadline?: Deadline | undefined
    /** Milliseconds since 1970. */
    readonly now: number
  },
): { readonly events: readonly SeenEvent[]; readonly seen: Seen } {
  const events: SeenEvent[] = []
  const say = (reason: SeenEvent['reason'], message: string, object?: SeenEvent['object']) =>
    void events.push({ reason, message, ...(object ? { object } : {}) })
  const { engine, packs } = observed
  const { phase, reason, health } = status
  const seen: Seen & { api?: boolean } = {
    ...before,
    isHostRecorded: observed.isHostRecorded,
    ...(engine.damaged.length > 0 ? { damaged: engine.damaged } : {}),
    phase: `${phase} ${phase === 'Failed' ? reason : ''}`,
  }
  if (observed.isHostRecorded && before.isHostRecorded !== true)
    say('HostRecorded', 'the state of this host before the cluster is recorded')
  for (const each of engine.damaged) if (!before.damaged?.includes(each)) say('NoteDamaged', each)
  const api = engine.api === 'answers'
  const tellAnswer = () => {
    if (api && before.api !== true) say('ApiAnswers', 'the API server answers')
  }
  if (isDeleting) {
    // That it is silent now is no news; that it answers, after it was reported silent, is.
    tellAnswer()
    if (api) seen.api = true
    const isRemoved = !engine.isPresent
    if (isRemoved && before.isRemoved !== true)
      say('KubernetesRemoved', 'Kubernetes and its files were taken from this host')
    if (!observed.isHostRecorded && before.isHostRecorded === true)
      say('HostRestored', 'what Kubernetes and its network had changed of this host was taken back')
    return { events, seen: { ...seen, isRemoved } }
  }

  const { address } = desired.node.virtualAddress ?? {}
  const isHeld = address !== undefined && observed.isAddressHeld
  if (isHeld && before.isAddressHeld !== true) say('AddressHeld', `this host holds ${address}`)
  if (address !== undefined && !isHeld && before.isAddressHeld === true)
    say('AddressLost', `this host does not hold ${address} any more`)

  const { settings } = observed
  const emitted = {
    ntpServers: tellSetting(settings.ntpServers, before.ntpServers, desired.settings.ntpServers.join(', ')),
    sshKeys: tellSetting(settings.sshKeys, before.sshKeys, keysIn(desired.settings.sshKeys)),
  }
  if (emitted.ntpServers !== (before.ntpServers ?? ''))
    if (settings.ntpServers.problem !== '') say('NtpServersNotApplied', settings.ntpServers.problem)
    else
      say(
        'NtpServersApplied',
        emitted.ntpServers === ''
          ? 'this host has its own NTP servers again'
          : `this host takes its time from ${emitted.ntpServers}`,
      )
  if (emitted.sshKeys !== (before.sshKeys ?? ''))
    if (settings.sshKeys.problem !== '') say('SshKeysNotApplied', settings.sshKeys.problem)
    else
      say(
        'SshKeysApplied',
        emitted.sshKeys === ''
          ? 'the SSH keys of the cluster were taken away'
          : `the account has ${emitted.sshKeys}`,
      )

  const runs = { containerd: engine.containerd === 'running', kubelet: engine.kubelet === 'running' }
  if (runs.containerd && before.containerd !== true) say('ContainerRuntimeStarted', 'containerd runs')
  if (!runs.containerd && before.containerd === true)
    say('ContainerRuntimeStopped', 'containerd does not run')
  if (runs.kubelet && before.kubelet !== true) say('KubeletStarted', 'the kubelet runs')
  if (!runs.kubelet && before.kubelet === true) say('KubeletStopped', 'the kubelet does not run')

  const controlPlane = engine.controlPlane === 'complete'
  if (controlPlane && before.controlPlane !== true)
    say('ControlPlaneStarted', `the control plane of Kubernetes ${desired.kubernetes.version} is set up`)
  tellAnswer()
  if (!api && before.api === true)
    say('ApiSilent', ['the API server does not answer', observed.missingAddress].filter(Boolean).join(': '))

  const ending = tellEnding(before, engine, say)

  const { node } = engine
  const isReady = node?.isReady === true
  const ofNode = node && { kind: 'Node', name: node.name }
  if (isReady && before.node !== true) say('NodeReady', `the node ${node.name} is Ready`, ofNode)
  // A silent API server says nothing of the node.
  if (node && !isReady && before.node === true)
    say('NodeNotReady', `the node ${node.name} is not Ready: ${node.message}`, ofNode)

  const applied: Record<string, string> = {}
  const available: Record<string, string> = {}
  for (const { id, name, version, digest } of desired.packs) {
    const pack = packs.get(id)
    const object = { kind: 'pack', name: id }
    if (pack?.appliedDigest === digest) {
      applied[id] = digest
      if (before.applied?.[id] !== digest) say('PackApplied', `${name} ${version} is applied`, object)
    }
    // Emitted once for each digest: later changes are the health of the cluster.
    const wasEmitted = before.available?.[id] === digest
    if (wasEmitted || (applied[id] === digest && pack?.isAvailable)) {
      available[id] = digest
      if (!wasEmitted) say('PackAvailable', `the workloads of ${name} ${version} are available`, object)
    }
  }
  const allAvailable =
    desired.packs.length === Object.keys(available).length && (before.allAvailable === true || isReady)
  if (allAvailable && before.allAvailable !== true)
    say('PacksAvailable', `all packs are available (${desired.packs.length})`)

  const troubles = api
    ? tellTroubles(before.troubles ?? [], { desired, observed, deadline, now }, say)
    : before.troubles

  const isStuck = stuck !== ''
  if (isStuck && before.isStuck !== true) say('RollbackFailed', stuck)
  if (phaseEvents[phase] && before.phase !== seen.phase)
    say(phaseEvents[phase], reason || `the cluster ${desired.name} is ${phase}`)
  const hasRun = phase === 'Running' || before.unhealthy !== undefined
  const unhealthy = health.status === 'Healthy' ? '' : troubleOf(desired, observed) || (health.reason ?? '')
  if (hasRun && unhealthy !== before.unhealthy)
    if (unhealthy === '')
      say(
        'Healthy',
        'the node is Ready, and all workloads of the packs, CoreDNS and kube-proxy are available',
      )
    else say('Unhealthy', unhealthy)

  return {
    events,
    seen: {
      ...seen,
      ...emitted,
      ...ending,
      isAddressHeld: isHeld,
      ...runs,
      controlPlane,
      api,
      applied,
      available,
      allAvailable,
      isStuck,
      node: node ? isReady : before.node === true,
      ...(hasRun ? { unhealthy } : {}),
      ...(troubles === undefined || (troubles.length === 0 && before.troubles === undefined)
        ? {}
        : { troubles }),
    },
  }
}

/**
 * How long a trouble has to be gone before it is reported so: a container that crashes, or that a probe ends, runs between its crashes.
 * The others end when their cause does.
 */
const calmMs: Readonly<Partial<Record<TroubleReason, number>>> = { Crashing: 60_000, ProbeFailing: 60_000 }

/** Emits each trouble of the pods of a workload once, however often they are restarted or made anew, and when it is over. */
function tellTroubles(
  before: readonly SeenTrouble[],
  {
    desired,
    observed,
    deadline,
    now,
  }: {
    readonly desired: DesiredState
    readonly observed: Observed
    readonly deadline: Deadline | undefined
    readonly now: number
  },
  say: (reason: SeenEvent['reason'], message: string, object?: SeenEvent['object']) => void,
): readonly SeenTrouble[] {
  const packs = new Set(['', ...desired.packs.map(({ id }) => id)])
  const present = troublesOf(observed)
    .filter(({ pack }) => packs.has(pack))
    .map((trouble) => ({
      trouble,
      seen: {
        ...seenOf(trouble),
        generation: desired.generation,
        since: sinceOf(trouble, before) ?? new Date(now).toISOString(),
      },
    }))
  const has = (all: readonly SeenTrouble[], one: SeenTrouble) => all.some((each) => isSame(each, one))
  const found = present.map(({ seen }) => seen)
  const unique = found.filter((each, index) => found.findIndex((other) => isSame(each, other)) === index)
  for (const each of unique) {
    const known = before.find((other) => isSame(other, each))
    // An operator who follows another revision wants to know that it is there with that one too.
    if (known && (known.generation ?? desired.generation) === desired.generation) continue
    const { trouble } = present.find(({ seen }) => seen === each) ?? {}
    if (!trouble) continue
    const { namespace, pod, reason, container, message } = trouble
    const place = `${namespace}/${pod}${container === undefined ? '' : `, container ${container}`}`
    const end = deadline ? `; ${deadlineText(deadline)}` : ''
    const object = each.pack === '' ? { kind: 'Pod', name: pod, namespace } : packObject(each.pack)
    say('PodsFailing', `${place}: ${reason}: ${message}${end}`, object)
  }
  // Of packs that are gone nothing is said.
  const gone = before.filter((each) => !has(unique, each) && packs.has(each.pack))
  const kept = gone.flatMap((each) => {
    const goneAt = each.goneAt ?? now
    // A clock that was set back does not keep it.
    const goneMs = Math.abs(now - goneAt)
    return goneMs < (calmMs[each.reason] ?? 0) ? [{ ...each, goneAt }] : []
  })
  for (const each of gone) {
    if (has(kept, each)) continue
    const what = `${each.of}${each.container === '' ? '' : `, container ${each.container}`}`
    const [namespace = '', kind = '', name = ''] = each.of.split('/')
    const object = each.pack === '' ? { kind, name, namespace } : packObject(each.pack)
    say('PodsRecovered', `${what}: ${each.reason} is over`, object)
  }
  // The order in which pods are read says nothing.
  return [...unique, ...kept].toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)))
}

const nameOf = ({ pack, of, container, reason }: SeenTrouble) => [pack, of, container, reason].join(' ')

const packObject = (name: string) => ({ kind: 'pack', name })

const seenOf = ({ pack, reason, namespace, workload, pod, container = '' }: PackTrouble): SeenTrouble => ({
  pack,
  reason,
  container,
  of: `${namespace}/${workload ?? `Pod/${pod}`}`,
})

/** The stored time since which a trouble is there; before it is stored, the time of Kubernetes. */
function sinceOf(trouble: PackTrouble, known: readonly SeenTrouble[]): string | undefined {
  const own = seenOf(trouble)
  return known.find((each) => isSame(each, own))?.since ?? trouble.sinceTimestamp
}

/** Troubles with the time since which they are there. Pure. */
export const sinceSeen = (
  troubles: readonly PackTrouble[],
  { troubles: known = [] }: Seen,
): readonly PackTrouble[] =>
  troubles.map((trouble) => {
    const since = sinceOf(trouble, known)
    return since === undefined ? trouble : { ...trouble, sinceTimestamp: since }
  })

const isSame = (one: SeenTrouble, other: SeenTrouble) => nameOf(one) === nameOf(other)

/** What follows when no revision comes, in words. */
const deadlineText = ({ leftMs, action }: Deadline): string =>
  action === 'takenBack'
    ? `the revision is taken back in ${shortDuration(leftMs)} unless it runs`
    : `an operator is needed in ${shortDuration(leftMs)} unless it runs`

/** State of a setting to report; while a step is about to change it, the last reported one. */
function tellSetting({ isApplied, problem }: SettingObserved, before = '', desired: string): string {
  if (problem !== '') return `not applied: ${problem}`
  return isApplied ? desired : before
}

const keysIn = (keys: readonly string[]) =>
  keys.length === 0 ? '' : `${keys.length} SSH key${keys.length === 1 ? '' : 's'} of the cluster`

/** Emits each certificate and authority that ends once, and when none ends any more. */
function tellEnding(
  before: Seen,
  { endingCertificates, endingAuthorities }: Observed['engine'],
  say: (reason: SeenEvent['reason'], message: string) => void,
): Pick<Seen, 'endingCertificates' | 'endingAuthorities'> {
  const { endingCertificates: emitted = [], endingAuthorities: emittedAuthorities = [] } = before
  for (const each of endingCertificates) if (!emitted.includes(each)) say('CertificateEnding', each)
  if (emitted.length > 0 && endingCertificates.length === 0)
    say('CertificatesValid', 'every certificate can be read, and none ends soon that is not renewed')
  for (const each of endingAuthorities) if (!emittedAuthorities.includes(each)) say('AuthorityEnding', each)
  if (emittedAuthorities.length > 0 && endingAuthorities.length === 0)
    say('AuthoritiesValid', 'no certificate authority of Kubernetes ends soon')
  return {
    ...(endingCertificates.length > 0 || emitted.length > 0 ? { endingCertificates } : {}),
    ...(endingAuthorities.length > 0 || emittedAuthorities.length > 0 ? { endingAuthorities } : {}),
  }
}

const phaseEvents: Readonly<Partial<Record<ClusterStatus['phase'], SeenEvent['reason']>>> = {
  Provisioning: 'Provisioning',
  Provisioned: 'Provisioned',
  Running: 'Running',
  Failed: 'Failed',
  Unknown: 'Unknown',
}
