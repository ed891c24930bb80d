import { memberHeader } from '../../archive/tar-member.ts'
import { tarEnd, tarPadding } from '../../archive/ustar.ts'
import type { ArchiveLimits } from '../../archive/limits.ts'
import type { DeclaringProfile, Problem, GivenVariable } from '../definition.ts'
import type { Verdict } from '../rules/pattern.ts'
import type { SystemFacts } from '../rules/system-macros.ts'
import type { ValidatedVariable } from '../rules/variables.ts'
import type { Variable } from '../schemas.ts'
import type { Refused } from '../../program/worker.ts'

/** Name of the definition in the download of a host, and of its file on the disk of the platform. */
export const deliveredDefinition = 'definition.tar.zst'

/** Name of the description of the cluster in the download of a host. */
export const deliveredCluster = 'cluster.json'

/** Largest description, in bytes: the platform makes no larger one, and no host takes it. */
export const largestDescription = 6 * 1_048_576

/** The bytes around the definition in a tar for a host. */
export interface DeliveryFrame {
  readonly before: Buffer
  readonly after: Buffer
}

/**
 * A host downloads a tar of two members: the description of the cluster, which has secrets, and the definition, a file. It is never
 * on the disk as a whole, so this gives the bytes before and after the file. A cluster that is deleted has no definition.
 * @param head the description of the cluster, JSON
 * @param definitionBytes size of the definition; `undefined` where there is none
 */
export function deliveryFrame(head: Buffer, definitionBytes: number | undefined): DeliveryFrame {
  const description = [memberHeader(deliveredCluster, head.length), head, tarPadding(head.length)]
  if (definitionBytes === undefined)
    return { before: Buffer.concat([...description, tarEnd()]), after: Buffer.alloc(0) }
  return {
    before: Buffer.concat([...description, memberHeader(deliveredDefinition, definitionBytes)]),
    after: Buffer.concat([tarPadding(definitionBytes), tarEnd()]),
  }
}

/**
 * The protocol between the daemon and the program `examine.cjs`. The first line of standard input is the order, JSON. For
 * an examination, further lines follow: each is the number of bytes that can be read by now, the last one is `end`.
 * Standard output is the finding, JSON.
 */
export interface ExaminationOrder {
  /** The archive, which may still grow. */
  readonly file: string
  /** Folder of the results and of the unpacked archive. It exists, and only the daemon's upload writes there too. */
  readonly folder: string
  readonly limits: Partial<ArchiveLimits>
  /** Space that stays free on the disk of the folder, whatever the archive unpacks to. */
  readonly reserveBytes: number
  /** Whether the archive is hashed too. */
  readonly isHashed: boolean
}

/** An order to judge values for the variables of a definition in a slot, if that is too much work for the daemon. */
export interface JudgementOrder {
  /** Path of its `profiles.json`. */
  readonly profiles: string
  readonly given: readonly GivenVariable[]
}

/** An order to examine one pack in its own folder, as a platform takes it; the archive is complete. */
export interface PackOrder {
  readonly pack: {
    /** The archive. */
    readonly file: string
    /** Folder of the results: `packContent`, and `packReply`. It exists, and is empty but for the archive. */
    readonly folder: string
    /** The uid that the pack will have. */
    readonly uid: string
    readonly limits: Partial<ArchiveLimits>
    readonly reserveBytes: number
  }
}

/** An order to examine an exported profile. Further lines follow: its bytes in base64, in pieces, and `end`. */
export interface ExportOrder {
  readonly profile: {
    /** Folder of the results: `exportFiles`, and `profilePacks`. It exists, and is empty. */
    readonly folder: string
    readonly limits: Partial<ArchiveLimits>
    readonly reserveBytes: number
    /** Whether misspelt fields are refused, since their values would be lost without a word; stored ones stay accepted. */
    readonly isNew: boolean
  }
}

/** An order to check a cluster of a platform, and to build its definition. Its one line has secrets. */
export interface ClusterOrder {
  readonly cluster: {
    /** Folder of the results: `deliveredDefinition`, and `resolvedPacks`. It exists, and is empty. */
    readonly folder: string
    readonly profiles: readonly ProfileSource[]
    /** Folders, each a pack. */
    readonly packs: readonly string[]
    /** Values of variables; each names its profile. */
    readonly given: readonly GivenVariable[]
    readonly facts: SystemFacts
    /** The description beside the definition. Without it, nothing is built. */
    readonly wanted?: ClusterToDeliver
    readonly limits: Partial<ArchiveLimits>
    readonly reserveBytes: number
  }
}

/** A profile that a platform keeps, in its parts. */
export interface ProfileSource {
  readonly uid: string
  /** As it was exported, without uid and times; JSON. */
  readonly metadata: string
  /** Path of `exportFiles.json`. */
  readonly file: string
  /** For each of its packs the version that its tag means now; empty where there is none. */
  readonly packVersions: readonly string[]
  /** JSON, secrets included; absent where the export has none. */
  readonly variables?: string
}

/** The description of a cluster for its host, but for fields that follow from the definition. */
interface ClusterToDeliver {
  readonly number: number
  readonly cluster: { readonly uid: string; readonly name: string }
  readonly tenantUid: string
  /** The `ClusterConfiguration` of the service API, without variables. */
  readonly configuration: { readonly metadata: object; readonly spec: object }
}

/** The line after the last number. */
export const endLine = 'end'

/** Details for the API: `ClusterProfileDetail[]`. */
export const detailsFile = 'details.json'
/** Input of a validation of variables, with defaults in plain text: `StoredProfiles`. */
export const profilesFile = 'profiles.json'

/** The folder of an examined pack, with its files as they are packed into a definition. */
export const packContent = 'content'
/** Reply of a platform about a pack: `PackTagEntity`, JSON. */
export const packReply = 'reply.json'
/**
 * The parts of an exported profile that stand between its metadata and its variables, for each format. Metadata and variables are small and
 * change, and variables are secret, so they are kept elsewhere.
 */
export const exportFiles = { json: 'export.json', yaml: 'export.yaml' } as const
/** Reply of a platform about the packs of a profile: two lines of JSON for each, the pack without its values, and its values. */
export const profilePacks = 'packs.jsonl'

/** Up to version 0.1 the file held the profiles alone, without the sizes of their patterns. */
export type StoredProfiles = CountedProfiles | readonly DeclaringProfile[]

export interface CountedProfiles {
  readonly profiles: readonly DeclaringProfile[]
  /** The verdict on every pattern, so that the daemon need not compile a pattern to know its size. */
  readonly patterns: readonly (readonly [source: string, verdict: Verdict])[]
}

/** Settings of Kubernetes in the profiles, after variables and macros. */
export interface ExaminedKubernetes {
  /** Name of the pack. */
  readonly pack: string
  /** Without `v`. */
  readonly version: string
  /** `cluster.config` of its values, as kubeadm reads it; a mask stands for each sensitive value. */
  readonly config: unknown
}

/** `ExaminedKubernetes` of a cluster that was built, JSON. */
export const kubernetesFile = 'kubernetes.json'

/** The packs of a cluster with the values that they have on their host, sensitive ones masked: an array of `ClusterProfileTemplate`, JSON. */
export const resolvedPacks = 'resolved.json'

/** A definition that can be used. */
export interface Examined {
  readonly name: string
  readonly version: string
  /** Of the archive, hex; empty if not requested. */
  readonly sha256: string
  readonly sizeBytes: number
  /** Warnings. */
  readonly problems: readonly Problem[]
}

/** The result of judging values. */
export interface Judgement {
  readonly variables: readonly ValidatedVariable[]
  readonly patterns: CountedProfiles['patterns']
}

/** A pack that can be packed into a definition. */
export interface ExaminedPack {
  readonly name: string
  readonly version: string
  readonly displayName: string
  readonly layer: string
  /** Of pack.json; empty where it has none. */
  readonly addonType: string
  readonly addonSubType: string
  readonly group: string
  readonly eol: string
  readonly cloudTypes: readonly string[]
  readonly annotations: Readonly<Record<string, string>>
  /** Names of its files with Kubernetes YAML. */
  readonly manifests: readonly string[]
  /** SHA-256, hex, of the sums of its files in the format of sha256sum(1), sorted: the same however the folder was packed. */
  readonly digest: string
  /** Bytes of its files. */
  readonly sizeBytes: number
}

/** A pack of a profile. Empty where the export has none. */
export interface ExaminedReference {
  readonly name: string
  readonly tag: string
  readonly version: string
  readonly layer: string
  readonly type: string
  /** Bytes of its two lines in `profilePacks`, without the line ends. */
  readonly lineBytes: readonly [pack: number, values: number]
}

/** A profile that can be a part of a definition. */
export interface ExaminedExport {
  readonly name: string
  readonly version: string
  readonly type: string
  readonly cloudType: string
  readonly description: string
  /** As it was exported, without uid and times; JSON. */
  readonly metadata: string
  /** As they were exported, JSON, secrets included; absent where the export has none. */
  readonly variables?: string
  /** As a reply shows them, secrets masked. */
  readonly shownVariables: readonly Variable[]
  readonly packs: readonly ExaminedReference[]
  /** Whether a pack uses a macro of a project or tenant. */
  readonly hasUserMacros: boolean
}

/** A problem of a cluster, with its profile and pack. */
export interface ClusterProblem extends Problem {
  readonly profileUid?: string
  /** Name of the pack. */
  readonly pack?: string
}

/** The finding about a cluster. */
export interface ExaminedCluster {
  /** Errors first. */
  readonly problems: readonly ClusterProblem[]
  /** Absent where it cannot be read, or is more than a host is asked about. */
  readonly kubernetes?: ExaminedKubernetes
  /** Absent where no build was requested, or something is an error. */
  readonly built?: {
    /** Of the definition, hex. */
    readonly sha256: string
    readonly sizeBytes: number
    /** The description of the cluster for its host, JSON, with secrets. */
    readonly head: string
    /** SHA-256 of all that the host downloads, hex. */
    readonly digest: string
  }
}

export type Finding =
  | { readonly examined: Examined }
  | { readonly judged: Judgement }
  | { readonly pack: ExaminedPack }
  | { readonly profile: ExaminedExport }
  | { readonly cluster: ExaminedCluster }
  | { readonly refused: Refused }
