/** What is, as the parts of the room see it; made anew before each plan. */
export interface Observed {
  /** Whether the state of the host before the cluster is recorded. */
  readonly isHostRecorded: boolean
  /** Whether this host holds the virtual address; true where none is wanted. */
  readonly isAddressHeld: boolean
  /** That an address of the node is not on this host any more, and what to do; absent where all are. */
  readonly missingAddress?: string
  readonly engine: EngineObserved
  /** By the `id` of the pack, also of packs that are not wanted any more; packs that were never applied are missing. */
  readonly packs: ReadonlyMap<string, PackObserved>
  readonly settings: SettingsObserved
}

export interface SettingsObserved {
  readonly ntpServers: SettingObserved
  readonly sshKeys: SettingObserved
}

/** A setting of the host that belongs to the cluster. */
export interface SettingObserved {
  /** Whether the host has what is wanted; true where nothing is wanted and nothing is left. */
  readonly isApplied: boolean
  /** Whether a step can make it so. */
  readonly isDue: boolean
  /** Whether something of an earlier step may be on the host. */
  readonly isPlaced: boolean
  /** Why no step can make it so, and what to do; empty unless that is so. */
  readonly problem: string
}

/** Nothing is wanted, and nothing is there. */
export const noSetting: SettingObserved = { isApplied: true, isDue: false, isPlaced: false, problem: '' }

export type UnitObserved = 'absent' | 'stopped' | 'running'

export interface EngineObserved {
  /** Whether anything of the engine is on this host: units, programs, files. */
  readonly isPresent: boolean
  /** Whether programs, configuration and units are those of the wanted generation. */
  readonly isPrepared: boolean
  /** Notes of the engine that cannot be read any more, with what follows; sentences for operators. */
  readonly damaged: readonly string[]
  readonly containerd: UnitObserved
  readonly kubelet: UnitObserved
  /** `partial`: an initialisation was begun and did not end; it is taken away before the next try. */
  readonly controlPlane: 'absent' | 'partial' | 'complete'
  /** Version of the control plane that is set up, for example `1.34.4`; empty where there is none. */
  readonly version: string
  /** Whether the control plane has the configuration that is wanted; true where there is none. */
  readonly isConfigured: boolean
  /** A change of the version of Kubernetes that was begun and is neither good nor taken back. */
  readonly change?: VersionChange
  /** Whether certificates of the control plane have to be renewed now. */
  readonly isRenewalDue: boolean
  /** The control plane or the kubelet may not work before that: a certificate has ended, or a renewal was cut off. */
  readonly isRenewalOverdue: boolean
  /** What ends soon and is not renewed by itself, or cannot be read: certificates and authorities; sentences for operators. */
  readonly endingCertificates: readonly string[]
  readonly endingAuthorities: readonly string[]
  readonly api: 'absent' | 'silent' | 'answers'
  /** Node of this host; undefined where the API does not answer or has none. */
  readonly node?: NodeObserved
  /** The name by which the kubelet goes where its unit has none; as a rule that of this host. */
  readonly followsHostName?: string
  /** Why CoreDNS or kube-proxy does not run, in one line; absent where both do, and where the API server does not say. */
  readonly addonTrouble?: string
}

/** From a version of Kubernetes to another, as it is noted on the disk. */
export interface VersionChange {
  readonly from: string
  readonly to: string
  /** Generation with which it was begun. */
  readonly generation: number
  /** From `copied` on there is a copy to go back to. */
  readonly phase: 'copying' | 'copied' | 'upgrading' | 'upgraded' | 'restoring'
}

/** A copy of Kubernetes to go back to. */
export interface CopyObserved {
  /** The version that it is of. */
  readonly from: string
  /** Generation whose change it was made for. */
  readonly generation: number
  /** What is written to the API later is not in it. Milliseconds since 1970. */
  readonly at: number
}

export interface NodeObserved {
  readonly name: string
  readonly isReady: boolean
  /** Why it is not ready. */
  readonly message: string
}

export interface PackObserved {
  /** `digest` of the wanted pack that was applied whole; empty after a part of it only. */
  readonly appliedDigest: string
  /** Steps of the pack, by key, that are done for `partDigest`. */
  readonly partDigest: string
  readonly doneSteps: readonly string[]
  /** Releases of its charts that may be in the cluster, as `namespace/name`. */
  readonly charts: readonly string[]
  /** Whether objects of its manifests may be in the cluster. */
  readonly hasObjects: boolean
  readonly isAvailable: boolean
  /** Whether it was available once as it is wanted; what goes down afterwards is a matter of health. */
  readonly wasAvailable: boolean
  /** What it waits for or what is wrong; one line. */
  readonly message: string
}

/** A host without a cluster, for a plan of everything. */
export const emptyHost: Observed = {
  isHostRecorded: false,
  isAddressHeld: true,
  engine: {
    ...{ isPresent: false, isPrepared: false, damaged: [], containerd: 'absent', kubelet: 'absent' },
    ...{ controlPlane: 'absent', version: '', isConfigured: true, api: 'absent' },
    ...{ isRenewalDue: false, isRenewalOverdue: false, endingCertificates: [], endingAuthorities: [] },
  },
  packs: new Map(),
  settings: { ntpServers: noSetting, sshKeys: noSetting },
}

/** What is, with messages of Kubernetes masked: they quote what was applied, as the name of an image. */
export function withoutSecrets(observed: Observed, hide: (text: string) => string): Observed {
  const { engine, packs } = observed
  const { node, addonTrouble } = engine
  return {
    ...observed,
    engine: {
      ...engine,
      ...(node ? { node: { ...node, message: hide(node.message) } } : {}),
      ...(addonTrouble === undefined ? {} : { addonTrouble: hide(addonTrouble) }),
    },
    packs: new Map([...packs].map(([id, pack]) => [id, { ...pack, message: hide(pack.message) }])),
  }
}
