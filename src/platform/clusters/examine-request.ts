import { packArchiveLimits } from '../../archive/limits.ts'
import type { ExaminedCluster } from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'
import type { PlatformSettings } from '../config.ts'
import type { ExaminationCaller, Examinations } from '../examinations.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { PackRecord } from '../packs/store.ts'
import type { Packs } from '../packs/packs.ts'
import type { ProfileRecord } from '../profiles/store.ts'
import type { Profiles } from '../profiles/profiles.ts'
import type { ClusterProblem, ClusterTemplate } from './schemas.ts'
import { configurationProblems, nodeAddressOf, packProblems } from './check-configuration.ts'
import { toTemplate } from './list.ts'
import type { Configuration } from './store.ts'
import type { RunningPacks } from './check-configuration.ts'
import { plainValues, type Given } from './values.ts'

/** Spec of a cluster. */
export interface ClusterRequest {
  readonly uid: string
  readonly projectUid: string
  readonly name: string
  readonly number: number
  /** Undefined where the request names no host that there is. */
  readonly host: HostRecord | undefined
  readonly configuration: Configuration
  /** Of the project or of the tenant. */
  readonly profiles: readonly ProfileRecord[]
  readonly given: Given
  /** Of a change: the running packs, as far as known. */
  readonly running?: RunningPacks
  /** Problems found before. */
  readonly problems: readonly ClusterProblem[]
}

export interface ExaminedRequest {
  /** Errors first. */
  readonly problems: readonly ClusterProblem[]
  readonly isPossible: boolean
  readonly templates: readonly ClusterTemplate[]
  readonly built: ExaminedCluster['built']
  /** @throws AppError ClusterChanged where a profile or a pack of the request is no longer the examined one */
  requireSame(): void
}

export interface ExamineRequestOptions {
  readonly profiles: Pick<Profiles, 'packsOf' | 'sourceOf' | 'findUsable'>
  readonly packs: Pick<Packs, 'folderOf' | 'has'>
  readonly examinations: Pick<Examinations, 'cluster'>
  readonly settings: Pick<PlatformSettings['packs'], 'reserveBytes'>
  readonly tenantUid: string
}

// The limits of a definition, which a host has too.
const limits = { ...packArchiveLimits, noun: 'definition', isPlainAllowed: false } as const
const mostProblems = 100

/**
 * Checks all of a request, and builds its definition into a folder where that is asked for and there is no error.
 * @throws AppError ClusterChanged, and the errors of the examination
 */
export type ExamineRequest = (
  request: ClusterRequest,
  how: { readonly folder: string; readonly isBuilt: boolean },
  caller: ExaminationCaller,
) => Promise<ExaminedRequest>

export const changedMeanwhile = () =>
  new AppError(
    platformErrors.ClusterChanged,
    'the cluster, or what it is made of, was changed meanwhile; send the request again',
  )

export function createExamineRequest(options: ExamineRequestOptions): ExamineRequest {
  const { profiles, packs, examinations, settings, tenantUid } = options
  return async (request, { folder, isBuilt }, caller) => {
    const { uid, name, number, host, configuration, given } = request
    const present = request.profiles.map((profile) => profiles.packsOf(profile))
    const templates = request.profiles.map((profile, index) => toTemplate(profile, present[index] ?? []))
    const own = [
      ...request.problems,
      ...configurationProblems(configuration, host),
      ...packProblems(templates, request.running),
    ]
    const used = present.flat().filter((pack): pack is PackRecord => pack !== undefined)
    const folders = [...new Set(used.map((pack) => packs.folderOf(pack)))]
    // The files of a profile that is changed, and of a pack that is deleted, go.
    const requireSame = () => {
      const isSame = request.profiles.every(
        ({ uid: profileUid, filesUid }) =>
          profiles.findUsable(profileUid, request.projectUid)?.filesUid === filesUid,
      )
      if (!isSame || !used.every(packs.has)) throw changedMeanwhile()
    }
    const isPossible = own.every(({ severity }) => severity !== 'error')
    const endpoint =
      configuration.spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint?.host?.trim() ?? ''
    const found: ExaminedCluster =
      request.profiles.length === 0
        ? { problems: [] }
        : await examinations
            .cluster(
              {
                folder,
                given: plainValues(given),
                limits,
                reserveBytes: settings.reserveBytes,
                packs: folders,
                profiles: request.profiles.map((profile) => profiles.sourceOf(profile)),
                facts: {
                  clusterName: name,
                  clusterUid: uid,
                  clusterKubevip: endpoint || (host?.reported.hostAddress ?? ''),
                },
                ...(isBuilt && isPossible
                  ? { wanted: { number, cluster: { uid, name }, tenantUid, configuration } }
                  : {}),
              },
              caller,
              requireSame,
            )
            .catch((error: unknown) => {
              requireSame()
              throw error
            })
    requireSame()
    // The rules for settings of Kubernetes: loaded with the first cluster, as on hosts.
    const { fixedSettingProblems, newClusterProblems } = await import('./check-host.ts')
    const { kubernetes } = found
    const configured = request.running?.configured
    const ofKubernetes = [
      ...(kubernetes && host && !request.running
        ? newClusterProblems(kubernetes, host, nodeAddressOf(configuration, host))
        : []),
      ...(kubernetes && configured ? fixedSettingProblems(kubernetes, configured) : []),
    ]
    const problems = [
      ...own,
      ...ofKubernetes,
      ...found.problems.map(({ place, ...problem }): ClusterProblem => ({ ...problem, path: place })),
    ]
    const errors = problems.filter(({ severity }) => severity === 'error')
    const others = problems.filter(({ severity }) => severity !== 'error')
    return {
      problems: [...errors, ...others].slice(0, mostProblems),
      isPossible: errors.length === 0,
      templates,
      built: found.built,
      requireSame,
    }
  }
}

const mostAttempts = 5

/** Attempts it again with the current state, where a profile was changed meanwhile. */
export async function whileChanging<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count += 1)
    try {
      return await attempt()
    } catch (error) {
      const isChanged = error instanceof AppError && error.kind === platformErrors.ClusterChanged
      if (!isChanged || count === mostAttempts) throw error
    }
}
