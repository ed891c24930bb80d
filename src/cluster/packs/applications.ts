import { iconPathOf } from '../../definition/slots/icons.ts'
import { createGivenTo, type GivenVariable } from '../../definition/definition.ts'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import type { EngineObserved, Observed } from '../loop/observed.ts'
import type { StepRecord } from '../loop/step-store.ts'
import { packIdOf, shownPack, type DesiredState, type DesiredPack } from '../desired/desired-state.ts'
import { chartKey } from './pack-steps.ts'
import type { PackRecord } from './pack-store.ts'
import { withTrouble } from './troubles.ts'
import type { ClusterCurrentApplications, PackInfo, packStatuses } from './schemas.ts'

export interface ApplicationsInput {
  /** The definition of the cluster, masked. */
  readonly profiles: readonly ClusterProfileDetail[]
  readonly desired: Pick<DesiredState, 'packs' | 'packTypes' | 'kubernetes'>
  /** As posted; values of sensitive variables are masked. */
  readonly given: readonly GivenVariable[]
  /** Undefined before the first observation of the cluster. */
  readonly observed: Pick<Observed, 'engine' | 'packs'> | undefined
  readonly records: readonly PackRecord[]
  readonly steps: readonly StepRecord[]
  /** Masks the sensitive values of the cluster: names of images and releases may be made of them. */
  readonly hide: (text: string) => string
}

interface Progress extends Pick<PackInfo, 'startTime' | 'endTime'> {
  readonly status: (typeof packStatuses)[number]
  readonly message: string
}

type DetailPack = ClusterProfileDetail['packs'][number]

/** The profiles of the cluster with the state of their packs. Pure. */
export function applicationsOf(input: ApplicationsInput): ClusterCurrentApplications {
  const { profiles } = input
  const givenTo = createGivenTo(input.given)
  return {
    clusterProfileTemplates: profiles.map((profile) => ({
      uid: profile.profileUid,
      name: profile.profileName,
      type: profile.profileType,
      version: profile.profileVersion,
      description: profile.profileDescription,
      packs: profile.packs.map((detail) => packInfo(input, profile, detail)),
      variables: profile.variables.map((variable) => ({
        ...variable,
        value: valueOf(variable, givenTo({ uid: profile.profileUid }, variable.name)),
      })),
    })),
  }
}

function packInfo(input: ApplicationsInput, profile: ClusterProfileDetail, detail: DetailPack): PackInfo {
  const { name, displayName, version, layer, values, logo } = detail
  const icon = iconPathOf(logo)
  const { packs, packTypes } = input.desired
  const id = packIdOf(profile.profileUid, name, displayName ?? '')
  const pack = packs.find((each) => each.id === id)
  const { message, ...progress } = pack ? packProgress(input, pack) : infrastructureProgress(input, layer)
  const { status } = progress
  const isApplied = status === 'Applied' || status === 'Available' || status === 'Unavailable'
  const isAvailable = status === 'Available'
  return {
    name,
    version,
    layer,
    type: packTypes?.[id] ?? '',
    values,
    logo,
    ...(icon === undefined ? {} : { icon }),
    ...progress,
    ...(displayName === undefined ? {} : { displayName }),
    conditions: [
      condition('Applied', isApplied, status, isApplied ? '' : input.hide(message)),
      condition('Available', isAvailable, status, input.hide(message)),
    ],
    contents: pack ? contentsOf(input, pack) : [],
  }
}

/** As the preparation takes it; both are masked where the variable is sensitive. */
function valueOf(
  { immutable, defaultValue, options = [] }: ClusterProfileDetail['variables'][number],
  given: string | undefined,
): string {
  const isLeft = given === undefined || (given === '' && immutable === true)
  return isLeft ? (defaultValue ?? options.find((each) => each.default)?.value ?? '') : given
}

const condition = (
  type: 'Applied' | 'Available',
  is: boolean,
  status: string,
  message: string,
): PackInfo['conditions'][number] => ({
  type,
  status: is ? 'True' : 'False',
  reason: is ? type : status,
  message,
})

function packProgress(input: ApplicationsInput, pack: DesiredPack): Progress {
  const { observed, records, steps } = input
  const { digest, id } = pack
  const record = records.find((each) => each.id === id)
  const seen = observed?.packs.get(id)
  const firstTrouble = seen?.troubles?.[0]
  const own = steps.filter((step) => step.pack === id)
  const failed = own.find(({ state }) => state === 'failed')
  const startedAt = record?.startedAt ?? earliest(own.map((step) => step.startedAt))
  const endedAt = record?.availableDigest === digest ? record.endedAt : null
  const times = {
    ...(startedAt === null ? {} : { startTime: timeOf(startedAt) }),
    ...(endedAt === null ? {} : { endTime: timeOf(endedAt) }),
  }
  if (failed && failed.reason !== '')
    return {
      ...times,
      status: 'Failed',
      message: withTrouble(`${failed.title}: ${failed.reason}`, firstTrouble),
    }
  if (record?.appliedDigest === digest) {
    if (record.availableDigest !== digest)
      return { ...times, status: 'Applied', message: withTrouble(seen?.message ?? '', firstTrouble) }
    return seen && !seen.isAvailable
      ? { ...times, status: 'Unavailable', message: withTrouble(seen.message, firstTrouble) }
      : { ...times, status: 'Available', message: '' }
  }
  if (own.length === 0) return { status: 'Pending', message: whatWaitsFor(input, pack) }
  const running = own.find(({ state }) => state === 'running')
  return { ...times, status: 'Applying', message: withTrouble(running?.title ?? '', firstTrouble) }
}

/** Wait of a pack that is not started: Kubernetes, or packs that come before it. */
function whatWaitsFor(input: ApplicationsInput, pack: DesiredPack): string {
  const { desired, observed, records, steps } = input
  if (observed?.engine.controlPlane !== 'complete') {
    const failed = steps.find((step) => step.pack === '' && step.state === 'failed')
    const why = failed ? `: ${failed.title}: ${failed.reason}` : ''
    return `it waits for Kubernetes, which is not set up yet${why}`
  }
  const isOpen = ({ id, digest, order }: DesiredPack) =>
    order < pack.order && records.find((each) => each.id === id)?.availableDigest !== digest
  const open = desired.packs.filter(isOpen)
  // Packs before the first open order are available.
  const now = open.filter(({ order }) => order === open[0]?.order)
  const found = now.map((each) => ({ each, ...packProgress(input, each) }))
  const first = found.find(({ status }) => status === 'Failed') ?? found[0]
  if (!first) return 'it is not begun yet'
  const { each, status, message } = first
  const why = message === '' ? '' : `: ${message}`
  const more = open.length > 1 ? `, and for ${open.length - 1} more` : ''
  return `it waits for the pack ${shownPack(each.id)}, which is ${status}${why}${more}`
}

/** State of the packs of the layers os and k8s, from the engine. */
function infrastructureProgress({ observed, desired }: ApplicationsInput, layer: string): Progress {
  if (layer === 'os')
    return { status: 'Available', message: 'the operating system of this host is used as it is' }
  const { engine } = observed ?? {}
  if (!engine) return { status: 'Pending', message: '' }
  if (engine.controlPlane === 'complete') return controlPlaneProgress(engine)
  const isStarted = engine.isPresent || engine.isPrepared
  return isStarted
    ? { status: 'Applying', message: `Kubernetes ${desired.kubernetes.version} is being set up` }
    : { status: 'Pending', message: 'it is not begun yet' }
}

function controlPlaneProgress({ api, node }: EngineObserved): Progress {
  if (api !== 'answers') return { status: 'Unavailable', message: 'the API server does not answer' }
  if (!node?.isReady)
    return {
      status: 'Applied',
      message: node ? `the node is not ready: ${node.message}` : 'the node is missing',
    }
  return { status: 'Available', message: '' }
}

function contentsOf({ records, hide }: ApplicationsInput, pack: DesiredPack): PackInfo['contents'] {
  const record = records.find(({ id }) => id === pack.id)
  const done = record?.partDigest === pack.digest ? record.doneSteps : []
  return [
    ...pack.charts.map((chart) => ({
      contentType: 'chart' as const,
      name: hide(`${chart.name}:${chart.version}`),
      syncStatus: done.includes(chartKey(pack, chart)) ? 'completed' : 'pending',
    })),
    ...pack.images.map((image) => ({
      contentType: 'image' as const,
      name: hide(image),
      // The pre-flight found it there, and it is kept for the cluster.
      syncStatus: 'completed',
      syncMsg: 'in the content of this host',
    })),
  ]
}

const timeOf = (at: number) => new Date(at).toISOString()
const earliest = (times: readonly number[]) => (times.length === 0 ? null : Math.min(...times))
