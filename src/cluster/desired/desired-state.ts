/**
 * Desired state of a cluster: made once from the posted configuration and the definition, with all variables and macros resolved. Data
 * only. It contains secrets, so it stays in the state folder.
 */
export interface DesiredState {
  readonly uid: string
  readonly name: string
  /** One more with each accepted change. */
  readonly generation: number
  /** Folder of this generation: the copy of the definition and the prepared files of the packs; only root may read it. */
  readonly folder: string
  readonly kubernetes: DesiredKubernetes
  readonly node: DesiredNode
  /** All packs in the order of their installation; of the layers `os` and `k8s` only those with manifests, charts or namespaces. */
  readonly packs: readonly DesiredPack[]
  readonly settings: DesiredSettings
  /** Type of each pack of the definition, by `id`, for replies: spectro, helm, manifest or oci. A cluster of 0.1.0 or before has none. */
  readonly packTypes?: Readonly<Record<string, string>>
}

/** Settings of the host that belong to the cluster; an empty list leaves the host as it is. */
export interface DesiredSettings {
  /** Names or addresses of the servers from which the host takes its time. */
  readonly ntpServers: readonly string[]
  /** Public keys, a line each as in sshd(8), "AUTHORIZED_KEYS FILE FORMAT". */
  readonly sshKeys: readonly string[]
}

/** The Kubernetes pack. */
export interface DesiredKubernetes {
  /** Name of the pack, for example `edge-k8s`; it decides the engine. */
  readonly pack: string
  /** Without `v`, for example `1.34.4`. */
  readonly version: string
  /** The text below `cluster.config` of its values: YAML; empty if there is none. */
  readonly config: string
  /** The files and sysctls that `stages.*` of the infrastructure packs would make; they are not made. */
  readonly stages: readonly string[]
}

/** This host as a node. */
export interface DesiredNode {
  /** Name of the node in Kubernetes. */
  readonly name: string
  /** Address at which the API server of this host listens. */
  readonly address: string
  /** Address of the control plane: the virtual address or the host's. */
  readonly endpoint: string
  /** Set where `endpoint` is an address that a unit of ours has to hold. */
  readonly virtualAddress?: { readonly address: string; readonly networkInterface: string }
  readonly poolName: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  /** Without the taint of a control plane. */
  readonly runsWorkloads: boolean
}

export interface Taint {
  readonly key: string
  readonly value: string
  readonly effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
}

/** A pack with all its installed parts. */
export interface DesiredPack {
  /** Unique in the cluster and stable over updates: `packIdOf`. */
  readonly id: string
  readonly profileUid: string
  readonly name: string
  readonly displayName: string
  readonly version: string
  readonly layer: string
  /** Packs with the same order are independent; the next order starts when all before are available. Rises from 0 in steps of 1. */
  readonly order: number
  /** SHA-256, hex, over all that is applied: an equal digest means that nothing has to be applied. */
  readonly digest: string
  readonly namespaces: readonly DesiredNamespace[]
  readonly manifests: readonly DesiredManifest[]
  readonly charts: readonly DesiredChart[]
  /**
   * Names of custom resource definitions among the manifests that the charts do not bring: they are applied before the charts, which may
   * need their kinds. Undefined where there are no charts.
   */
  readonly definitions?: readonly string[]
  /** Its pods are evicted before a change of it is applied; absent where they are not. */
  readonly drain?: DesiredDrain
  /** Images of the pack as they are pulled. */
  readonly images: readonly string[]
}

/** The `id` of a pack: `<profile uid>/<name>`, with `/<display name>` where it has one. */
export const packIdOf = (profileUid: string, name: string, displayName: string): string =>
  [profileUid, name, ...(displayName === '' ? [] : [displayName])].join('/')

/** A pack in a message, by its `id` without the uid: people know its name. */
export const shownPack = (id: string): string => id.slice(id.indexOf('/') + 1)

/** Eviction of the pods of a pack. */
export interface DesiredDrain {
  /** Label selector of the pods; empty for all pods of its workloads. */
  readonly podSelector: string
  /** They are deleted, whatever a PodDisruptionBudget says. */
  readonly isEvictionDisabled: boolean
}

export interface DesiredNamespace {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface DesiredManifest {
  readonly name: string
  /** For objects that name none. */
  readonly namespace: string
  /**
   * The rendered objects, relative to the folder of the generation: JSON, one object a line, without empty documents and with
   * the items of a List as objects of their own. The daemon reads it, and YAML of megabytes would stop its event loop for seconds.
   */
  readonly file: string
  /** SHA-256 of the file, hex; a pack that 0.1.0 or before prepared has none. */
  readonly sum?: string
}

export interface DesiredChart {
  readonly name: string
  readonly version: string
  readonly release: string
  readonly namespace: string
  /** The chart archive, relative to the folder of the generation. */
  readonly file: string
  /**
   * SHA-256 of the file, hex; of a chart that was packed from a folder, over the files of the folder. A pack that 0.1.0 or before prepared
   * has none, nor one of its values.
   */
  readonly sum?: string
  /** YAML with the values, mode 0600, relative to the folder of the generation. */
  readonly valuesFile: string
  readonly valuesSum?: string
}

/** Summary of the desired cluster for a deletion and the API, also where its folder is damaged. */
export interface ClusterSummary {
  readonly kubernetes: Pick<DesiredKubernetes, 'pack' | 'version'>
  readonly node: DesiredNode
  readonly definition: { readonly name: string; readonly version: string; readonly sha256: string }
  /**
   * The revision that brought Kubernetes and its configuration, where the definition has another: the packs of this one went back, and a
   * Kubernetes that is good does not.
   */
  readonly kubernetesOf?: number
  /** Digests of its content: pinned again where `pins.json` was lost. Absent in records of earlier versions. */
  readonly content?: readonly string[]
}
