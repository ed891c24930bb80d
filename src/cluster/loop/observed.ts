import type { ClusterTrouble } from '../schemas.ts'

/** Why a pod does not run; its pack is named by its place. */
export type Trouble = Omit<ClusterTrouble, 'pack'>

/** A trouble with the `id` of its pack; empty for CoreDNS and kube-proxy. */
export interface PackTrouble extends Trouble {
  readonly pack: string
}

/** Observed state, from the parts of the room; made anew before each plan. */
export interface Observed {
  /** Whether the state of the host before the cluster is recorded. */
  readonly isHostRecorded: boolean
  /** Whether this host holds the virtual address; true where none is desired. */
  readonly isAddressHeld: boolean
  /** Message of an address of the node that this host has lost, with advice; absent where it has all. */
  readonly missingAddress?: string
  readonly engine: EngineObserved
  /** By the `id` of the pack, also of packs that are not desired any more; packs that were never applied are missing. */
  readonly packs: ReadonlyMap<string, PackObserved>
  readonly settings: SettingsObserved
}

export interface SettingsObserved {
  readonly ntpServers: SettingObserved
  readonly sshKeys: SettingObserved
}

/** A setting of the host that belongs to the cluster. */
export interface SettingObserved {
  /** Whether the host has the desired setting; true where none is desired and nothing is left. */
  readonly isApplied: boolean
  /** Whether a step can make it so. */
  readonly isDue: boolean
  /** Whether something of an earlier step may be on the host. */
  readonly isPlaced: boolean
  /** Why no step can make it so, with advice; empty otherwise. */
  readonly problem: string
}

/** Nothing is desired, and nothing is there. */
export const noSetting: SettingObserved = { isApplied: true, isDue: false, isPlaced: false, problem: '' }

export type UnitObserved = 'absent' | 'stopped' | 'running'

export interface EngineObserved {
  /** Whether anything of the engine is on this host: units, programs, files. */
  readonly isPresent: boolean
  /** Whether programs, configuration and units are of the desired generation. */
  readonly isPrepared: boolean
  /** Unreadable notes of the engine, with the consequences; sentences for operators. */
  readonly damaged: readonly string[]
  readonly containerd: UnitObserved
  readonly kubelet: UnitObserved
  /** `partial`: an initialisation was started and did not end; it is taken away before the next try. */
  readonly controlPlane: 'absent' | 'partial' | 'complete'
  /** Version of the control plane that is set up, for example `1.34.4`; empty where there is none. */
  readonly version: string
  /** Whether the control plane has the desired configuration; true where there is none. */
  readonly isConfigured: boolean
  /** A started change of the version of Kubernetes that is neither good nor taken back. */
  readonly change?: VersionChange
  /** Whether certificates of the control plane have to be renewed now. */
  readonly isRenewalDue: boolean
  /** The control plane or the kubelet may not work before that: a certificate has ended, or a renewal was cut off. */
  readonly isRenewalOverdue: boolean
  /** Certificates and authorities that end soon and are not renewed by themselves, or cannot be read; sentences for operators. */
  readonly endingCertificates: readonly string[]
  readonly endingAuthorities: readonly string[]
  readonly api: 'absent' | 'silent' | 'answers'
  /** Node of this host; undefined where the API does not answer or has none. */
  readonly node?: NodeObserved
  /** The name by which the kubelet goes where its unit has none; as a rule the host's. */
  readonly followsHostName?: string
  /** Problem of CoreDNS or kube-proxy, in one line; absent where both run, and where the API server does not answer. */
  readonly addonTrouble?: string
  /** Pods of CoreDNS and kube-proxy that do not run; absent where all do. */
  readonly troubles?: readonly Trouble[]
}

/** Change of the version of Kubernetes, as noted on the disk. */
export interface VersionChange {
  readonly from: string
  readonly to: string
  /** Generation that started it. */
  readonly generation: number
  /** From `copied` on there is a copy to go back to. */
  readonly phase: 'copying' | 'copied' | 'upgrading' | 'upgraded' | 'restoring'
}

/** A copy of Kubernetes to go back to. */
export interface CopyObserved {
  /** Its version. */
  readonly from: string
  /** Generation of its change. */
  readonly generation: number
  /** Later writes to the API are not in it. Milliseconds since 1970. */
  readonly at: number
}

export interface NodeObserved {
  readonly name: string
  readonly isReady: boolean
  /** Why it is not ready. */
  readonly message: string
}

export interface PackObserved {
  /** `digest` of the fully applied pack; empty after a part of it only. */
  readonly appliedDigest: string
  /** Steps of the pack, by key, that are done for `partDigest`. */
  readonly partDigest: string
  readonly doneSteps: readonly string[]
  /** Releases of its charts that may be in the cluster, as `namespace/name`. */
  readonly charts: readonly string[]
  /** Whether objects of its manifests may be in the cluster. */
  readonly hasObjects: boolean
  readonly isAvailable: boolean
  /** Whether it was available once in its desired form; a later failure is a matter of health. */
  readonly wasAvailable: boolean
  /** Awaited condition or problem; one line. */
  readonly message: string
  /** Its pods that do not run; absent where all do. */
  readonly troubles?: readonly Trouble[]
}

/** A host without a cluster, for a plan of everything. */
export const emptyHost: Observed = {
  isHostRecorded: false,
  isAddressHeld: true,
  engine: {
    isPresent: false,
    isPrepared: false,
    damaged: [],
    containerd: 'absent',
    kubelet: 'absent',
    controlPlane: 'absent',
    version: '',
    isConfigured: true,
    api: 'absent',
    isRenewalDue: false,
    isRenewalOverdue: false,
    endingCertificates: [],
    endingAuthorities: [],
  },
  packs: new Map(),
  settings: { ntpServers: noSetting, sshKeys: noSetting },
}

/** Observed state, with messages of Kubernetes masked: they quote applied values, as the name of an image. */
export function withoutSecrets(observed: Observed, hide: (text: string) => string): Observed {
  const { engine, packs } = observed
  const { node, addonTrouble, troubles } = engine
  const hidden = (of: readonly Trouble[] | undefined) =>
    of === undefined ? {} : { troubles: of.map((each) => maskTrouble(each, hide)) }
  return {
    ...observed,
    engine: {
      ...engine,
      ...(node ? { node: { ...node, message: hide(node.message) } } : {}),
      ...(addonTrouble === undefined ? {} : { addonTrouble: hide(addonTrouble) }),
      ...hidden(troubles),
    },
    packs: new Map(
      [...packs].map(([id, pack]) => [
        id,
        { ...pack, message: hide(pack.message), ...hidden(pack.troubles) },
      ]),
    ),
  }
}

/** A trouble with its texts masked: names of objects may be made of sensitive values too. */
const maskTrouble = (trouble: Trouble, hide: (text: string) => string): Trouble => ({
  ...trouble,
  message: hide(trouble.message),
  namespace: hide(trouble.namespace),
  pod: hide(trouble.pod),
  ...(trouble.workload === undefined ? {} : { workload: hide(trouble.workload) }),
})

/** All pods in trouble, CoreDNS and kube-proxy first: other pods need these. None while the API server does not answer. Pure. */
export const troublesOf = ({ engine, packs }: Pick<Observed, 'engine' | 'packs'>): PackTrouble[] =>
  engine.api === 'answers'
    ? [
        ...(engine.troubles ?? []).map((each) => ({ pack: '', ...each })),
        ...[...packs].flatMap(([id, { troubles = [] }]) => troubles.map((each) => ({ pack: id, ...each }))),
      ]
    : []
