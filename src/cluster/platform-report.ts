import { createHideOf } from '../definition/slots/secrets.ts'
import { isDeleting, type ClusterStore } from './cluster-store.ts'
import { stepOf } from './details.ts'
import type { PackInfo } from './packs/schemas.ts'
import type { ClusterCurrentApplications } from './packs/schemas.ts'
import type { ClusterDetails } from './schemas.ts'
import type { Standing } from './states.ts'
import type { StepRecord } from './steps/step-store.ts'

/** What the platform is told of the cluster; sensitive values are masked. */
export interface PlatformReport {
  readonly uid: string
  readonly state: ClusterDetails['status']['clusterState']
  readonly revision: number
  /** What is done or waited for, or why it failed; may be empty. */
  readonly message: string
  readonly steps: ClusterDetails['status']['steps']
  readonly conditions: ClusterDetails['status']['clusterConditions']
  readonly packs: readonly (Pick<PackInfo, 'name' | 'version' | 'type' | 'startTime' | 'endTime'> & {
    readonly profileUid: string
    readonly condition: {
      readonly type: string
      readonly status: string
      readonly reason: string
      readonly message: string
    }
  })[]
  /** Undefined while there is none. */
  readonly kubeconfig: string | undefined
}

export interface PlatformReportOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly standing: () => Standing | undefined
  readonly steps: () => readonly StepRecord[]
  readonly conditions: () => ClusterDetails['status']['clusterConditions']
  /** Without what only the API of Kubernetes could explain. */
  readonly applications: () => Promise<ClusterCurrentApplications>
  /** @throws Error while there is none */
  readonly kubeconfig: () => Promise<string>
}

/** Reads the report; undefined without a cluster. It asks nothing of the API of Kubernetes. */
export function createPlatformReport(
  options: PlatformReportOptions,
): () => Promise<PlatformReport | undefined> {
  return async () => {
    const record = options.store.current()
    if (!record) return undefined
    const hide = createHideOf(record.sensitive)
    const { state, reason } = options.standing() ?? record.standing
    const [{ clusterProfileTemplates: profiles }, kubeconfig] = await Promise.all([
      options.applications(),
      isDeleting(record) ? undefined : options.kubeconfig().catch(() => undefined),
    ])
    return {
      ...{ uid: record.uid, state, revision: record.generation, message: hide(reason), kubeconfig },
      steps: options.steps().map((each) => stepOf(each, hide)),
      conditions: options.conditions(),
      packs: profiles.flatMap(({ uid: profileUid, packs }) =>
        packs.map(({ name, version, type, startTime, endTime, status, conditions }) => {
          const available = conditions.find((each) => each.type === 'Available')
          return {
            ...{ profileUid, name, version, type },
            ...(startTime === undefined ? {} : { startTime }),
            ...(endTime === undefined ? {} : { endTime }),
            condition: {
              ...{ type: 'Available', status: available?.status ?? 'False' },
              ...{ reason: status, message: available?.message ?? '' },
            },
          }
        }),
      ),
    }
  }
}
