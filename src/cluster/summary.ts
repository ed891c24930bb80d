import type { WantedKubernetes, WantedNode } from './wanted.ts'

/** What a deletion and the API need of the wanted cluster, also where its folder is damaged. */
export interface ClusterSummary {
  readonly kubernetes: Pick<WantedKubernetes, 'pack' | 'version'>
  readonly node: WantedNode
  readonly definition: { readonly name: string; readonly version: string; readonly sha256: string }
  /**
   * The revision that brought Kubernetes and its configuration, where that is not what the definition has: the packs of this one went back, and a
   * Kubernetes that is good does not.
   */
  readonly kubernetesOf?: number
  /** Digests of what it needs of the content: pinned again where `pins.json` was lost. Absent in records of earlier versions. */
  readonly content?: readonly string[]
}
