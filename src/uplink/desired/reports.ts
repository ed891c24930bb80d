import { hash } from 'node:crypto'
import { formatTime } from '../../base/time.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { type Answer, type Call, waitAfter } from '../client.ts'
import type { DesiredStatus } from './follow.ts'

/** A condition as the wire has it. */
export interface ReportedCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastProbeTime?: string
  /** The number of the desired state that it is about. */
  readonly observedGeneration?: number
}

/** Report of the cluster of this host; sensitive values are masked. */
export interface ClusterReport {
  readonly uid: string
  readonly state: string
  readonly revision: number
  readonly message: string
  readonly steps: readonly { readonly key: string; readonly title: string; readonly reason?: string }[]
  readonly conditions: readonly ReportedCondition[]
  readonly packs: readonly {
    readonly name: string
    readonly profileUid: string
    readonly version: string
    readonly condition: { readonly message: string }
  }[]
  readonly kubeconfig: string | undefined
}

/** Sends a report. */
export type Deliver = (
  call: Pick<Call, 'path'> & { readonly method: 'PUT' | 'PATCH'; readonly body: object },
) => Promise<Answer>

export interface ReportsOptions {
  readonly read: () => Promise<ClusterReport | undefined>
  readonly desired: () => DesiredStatus
  readonly agentVersion: string
  /** 0 up to 1. */
  readonly random: () => number
  readonly clock: Clock
  readonly log: Logger
}

/** Reports of the cluster that the platform wants: each when it has changed, and a heartbeat each minute. */
export interface Reports {
  /** The heartbeat of the cluster is due with the host's. */
  beat(): void
  /** After a login: the platform's data may be old, as after a restore. The kubeconfig is sent again only on request: that is audited. */
  forget(): void
  /**
   * Sends the due reports.
   * @param deliver sends with the token of this host
   * @returns the failure that ends the turn of the link
   */
  send(deliver: Deliver, mayGoOn: () => boolean): Promise<Answer | undefined>
  /** There may be something to report. */
  wake(): void
  /** Milliseconds until something is due; Infinity for nothing. */
  dueIn(): number
}

// Reading the packs costs a read of the whole definition.
const readAgainMs = 10_000
// The platform takes bodies of 256 KiB.
const most = {
  conditions: 64,
  packs: 1_000,
  steps: 1_000,
  text: 2_048,
  name: 256,
  kubeconfigBytes: 262_144,
  listBytes: 240_000,
}

export function createReports(options: ReportsOptions): Reports {
  const { clock, random, log, agentVersion } = options
  /** Hashes of the reports that the platform has, or has refused, by path. */
  const reported = new Map<string, string>()
  let isBeatDue = false
  let isDue = false
  let from = -Infinity
  let deferrals = 0
  let readAt = -Infinity
  let transition = { reason: '', status: '', at: 0 }

  function conditionOf({ condition }: DesiredStatus): ReportedCondition[] {
    if (!condition) return []
    const { status, reason, message, number } = condition
    if (status !== transition.status) transition = { reason, status, at: clock.now() }
    return [
      {
        type: 'Wanted',
        status,
        reason,
        message: short(message),
        lastTransitionTime: formatTime(transition.at),
        observedGeneration: number,
      },
    ]
  }

  function bodiesOf(uid: string, status: DesiredStatus, report: ClusterReport | undefined) {
    const isGone = status.condition?.reason === 'Deleted' || status.condition?.reason === 'DeletedOnHost'
    const path = `/v1/spectroclusters/${uid}`
    const heartbeat = {
      agentVersion,
      message: short(report?.message ?? ''),
      number: status.accepted,
      seenNumber: status.seen,
      ...(report ? { state: report.state, revision: report.revision } : isGone ? { state: 'Deleted' } : {}),
      steps: fitting(
        (report?.steps ?? []).slice(0, most.steps).map(({ key, title, reason, ...step }) => ({
          ...step,
          key: short(key, most.name),
          title: short(title, most.name),
          ...(reason === undefined ? {} : { reason: short(reason) }),
        })),
      ),
    }
    // The time of the last observation of a condition is no news.
    const conditions = (report?.conditions ?? [])
      .slice(0, most.conditions - 1)
      .map(({ type, status: is, reason = '', message = '', lastTransitionTime }) => ({
        type,
        status: is,
        reason,
        message: short(message),
        ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
      }))
    const packs =
      report &&
      fitting(
        report.packs.slice(0, most.packs).map((pack) => ({
          ...pack,
          condition: { ...pack.condition, message: short(pack.condition.message) },
        })),
      )
    const kubeconfig =
      report?.kubeconfig !== undefined && Buffer.byteLength(report.kubeconfig) <= most.kubeconfigBytes
        ? report.kubeconfig
        : undefined
    return [
      { method: 'PUT', path: `${path}/heartbeat`, body: heartbeat },
      { method: 'PATCH', path: `${path}/status/conditions`, body: [...conditions, ...conditionOf(status)] },
      ...(packs ? [{ method: 'PATCH', path: `${path}/packs/status`, body: { packs } } as const] : []),
      ...(kubeconfig === undefined
        ? []
        : [{ method: 'PUT', path: kubeconfigOf(uid), body: { kubeconfig } } as const]),
    ] as const
  }

  async function sendAll(deliver: Deliver, mayGoOn: () => boolean): Promise<Answer | undefined> {
    const status = options.desired()
    const { uid } = status
    // A platform that wants nothing any more has forgotten the cluster that it had deleted.
    const isOver = status.number === undefined && status.condition?.reason === 'Deleted'
    if (uid === undefined || !status.condition || isOver) {
      isBeatDue = isDue = false
      return undefined
    }
    readAt = clock.monotonic()
    isDue = false
    const found = await options.read()
    const report = found?.uid === uid ? found : undefined
    for (const { method, path, body } of bodiesOf(uid, status, report)) {
      if (!mayGoOn()) {
        isDue = true
        return undefined
      }
      const isHeartbeat = path.endsWith('/heartbeat')
      const sum = hash('sha256', JSON.stringify(body), 'hex')
      if (reported.get(path) === sum && !(isHeartbeat && isBeatDue)) continue
      const answer = await deliver({ method, path, body })
      if (answer.cause?.kind === 'busy') {
        deferrals++
        from = clock.monotonic() + waitAfter(deferrals, random(), answer.retryAfter)
        isDue = true
        return undefined
      }
      // The platform does not know the cluster on this host, as one that was restored; the next heartbeat asks again.
      if (answer.status === 404) {
        reported.clear()
        isBeatDue = false
        return undefined
      }
      const isRefused = answer.status === 400 || answer.status === 413
      if (answer.cause && !isRefused) {
        isDue = true
        return answer
      }
      if (isRefused)
        log.error({ path, cause: answer.cause?.message }, 'the platform refused a report of the cluster')
      deferrals = 0
      reported.set(path, sum)
      if (isHeartbeat) isBeatDue = false
      if (answer.lacksKubeconfig) reported.delete(kubeconfigOf(uid))
    }
    return undefined
  }

  const dueAt = () => Math.max(from, isBeatDue ? -Infinity : readAt + readAgainMs)

  return {
    beat: () => void (isBeatDue = true),
    forget() {
      for (const path of reported.keys()) if (!path.endsWith('/kubeconfig')) reported.delete(path)
      isDue = true
    },
    wake: () => void (isDue = true),
    dueIn: () => (isDue || isBeatDue ? Math.max(0, dueAt() - clock.monotonic()) : Infinity),
    async send(deliver, mayGoOn) {
      if (!(isDue || isBeatDue) || clock.monotonic() < dueAt()) return undefined
      return sendAll(deliver, mayGoOn)
    },
  }
}

const kubeconfigOf = (uid: string) => `/v1/spectroclusters/${uid}/assets/kubeconfig`

const short = (text: string, length = most.text) => text.slice(0, length)

/** The first entries, as many as a report may have. */
function fitting<T>(entries: readonly T[]): readonly T[] {
  let bytes = 0
  const end = entries.findIndex((entry) => {
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1
    return bytes > most.listBytes
  })
  return end === -1 ? entries : entries.slice(0, end)
}
