import { kubernetesFile, type ExaminedKubernetes } from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { KeptFolders } from '../kept-folders.ts'
import type { ClusterTemplate } from '../schemas/clusters.ts'
import type { ClusterRecord } from './cluster-store.ts'

/** The packs of which a host cannot take any other: of Kubernetes, and of its network. */
export interface RunningPacks {
  readonly kubernetes?: { readonly name: string; readonly version: string }
  readonly network?: { readonly name: string }
  /** With its settings, where the host has applied all that is wanted of it. */
  readonly configured?: ExaminedKubernetes
}

/** The first pack of a layer. */
export const packOf = (templates: readonly ClusterTemplate[], layer: string) =>
  templates.flatMap(({ packs }) => packs).find((pack) => pack.layer === layer)

/** Whether the host has applied all that is wanted of it. Pure. */
const hasApplied = ({ conditions, number }: Pick<ClusterRecord, 'conditions' | 'number'>): boolean =>
  conditions.some(
    ({ type, reason, observedGeneration }) =>
      type === 'Wanted' && reason === 'Applied' && observedGeneration === number,
  )

/** What a cluster runs: as its host has reported, or what that has applied last; empty where neither is known. Pure. */
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

/** The same with the settings of Kubernetes, where the host has applied what was built last. @param folders of the clusters */
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
