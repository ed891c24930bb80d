import type { GivenVariable } from '../../definition/definition.ts'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import type { PackNeeds } from '../needs/needs.ts'
import type { PreflightProblem } from './preflight-codes.ts'
import type { DesiredState, DesiredKubernetes, DesiredNode, DesiredSettings } from './desired-state.ts'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterRecord } from '../cluster-store.ts'
import type { Revision } from './revisions.ts'

/** Input of the preparation of a cluster. */
export interface PrepareRequest {
  /** Handle of a definition in a slot: `spec.archiveUploadPath`. */
  readonly archiveUploadPath: string
  /** The definition itself, where it is not in a slot: the copy that a cluster has of its own. */
  readonly source?: PrepareSource
  /** `spec.profileVariables`; variables that are not given have their defaults. */
  readonly variables: readonly GivenVariable[]
  /** Uid of the cluster, its name, and the number of this generation. */
  readonly uid: string
  readonly name: string
  readonly generation: number
  readonly node: DesiredNode
  readonly settings: DesiredSettings
  /** The Kubernetes that stays, where the definition has another. */
  readonly kubernetes?: DesiredKubernetes
}

/** An examined definition. */
interface PrepareSource {
  /** The archive. */
  readonly file: string
  /** The file with the API's form of it: `ClusterProfileDetail[]`. */
  readonly details: string
  readonly definition: PreparedDefinition
}

/** A variable of a profile with the value that it has in this cluster. */
export interface PreparedVariable {
  readonly profileUid: string
  readonly name: string
  /** Given or default, in plain text; may be empty. */
  readonly value: string
  readonly isSensitive: boolean
  /** Message of the problem, where it is required and has no value. */
  readonly missing?: string
}

/** A cluster, ready to be accepted: its files are in a staging folder. */
export interface Prepared {
  /** Its `folder` is the one to which `keep` moves the files. It is not complete if a problem is an error. */
  readonly desired: DesiredState
  /** Errors and warnings of variables, values, manifests and charts. */
  readonly problems: readonly PreflightProblem[]
  /** The API's form of the definition, without values of this cluster; sensitive defaults are masked. Also in `details.json`. */
  readonly profiles: readonly ClusterProfileDetail[]
  /** All declared variables. */
  readonly variables: readonly PreparedVariable[]
  /** Results of macros on sensitive values, as upper case of them; to be masked as these are. */
  readonly derived: readonly string[]
  /** Needs of all packs of the content: images that they list, except in the layer `os`, images in rendered manifests and charts; charts. */
  readonly needs: readonly PackNeeds[]
  /** Digests of the charts that were taken from the content, for `content.pin`. */
  readonly chartDigests: readonly string[]
  readonly definition: PreparedDefinition
  /** Moves the files to `desired.folder`, in one step and synced to the disk. To be called once. */
  keep(): Promise<void>
  /** Removes the files; nothing happens after `keep`. */
  discard(): Promise<void>
}

/** The definition from which it was prepared. */
export interface PreparedDefinition {
  readonly name: string
  readonly version: string
  /** Of the archive, hex. */
  readonly sha256: string
}

export interface Prepare {
  /**
   * Copies the definition, resolves variables and macros, takes out the charts, renders manifests and charts. It takes seconds, in a
   * process of its own; one request at a time.
   * @param signal ends the work with its reason, an AppError
   * @throws AppError BadRequest if the handle names no definition, StorageFull, NotReady if the daemon stops; why the archive is refused,
   *   also if it takes too much time or memory
   */
  prepare(request: PrepareRequest, signal: AbortSignal): Promise<Prepared>
}

/** Names of files in the folder of a generation. */
export const preparedFiles = {
  /** The archive of the definition. */
  definition: 'definition.spc',
  /** `DesiredState` */
  desired: 'wanted.json',
  /** `ClusterProfileDetail[]` */
  details: 'details.json',
} as const

/** Reads the desired state from the folder of the cluster. @throws Error with a reason for operators */
export async function readDesired(
  record: Pick<ClusterRecord, 'uid' | 'name' | 'generation' | 'folder' | 'summary' | 'deleteRequestedAt'>,
): Promise<DesiredState> {
  const file = join(record.folder, preparedFiles.desired)
  try {
    const desired = JSON.parse(await readFile(file, 'utf8')) as DesiredState
    // A cluster that was created by 0.1.0 or before has none.
    return { ...desired, settings: (desired as Partial<DesiredState>).settings ?? noSettings }
  } catch (error) {
    const { uid, name, generation, folder, summary, deleteRequestedAt } = record
    // A deletion needs no more than this.
    if (deleteRequestedAt !== null)
      return {
        uid,
        name,
        generation,
        folder,
        node: summary.node,
        packs: [],
        kubernetes: { ...summary.kubernetes, config: '', stages: [] },
        settings: noSettings,
      }
    throw new Error(
      `${file} cannot be read (${(error as Error).message}); delete the cluster and create it again`,
      { cause: error },
    )
  }
}

/** Reads the desired state of a revision. @throws Error with a reason for operators */
export const readDesiredOf = (
  { uid, name }: Pick<ClusterRecord, 'uid' | 'name'>,
  { generation, folder, summary }: Pick<Revision, 'generation' | 'folder' | 'summary'>,
): Promise<DesiredState> => readDesired({ uid, name, generation, folder, summary, deleteRequestedAt: null })

const noSettings: DesiredSettings = { ntpServers: [], sshKeys: [] }

/** Reads the profiles of a revision of the cluster, with sensitive values masked. */
export const readProfiles = async ({ folder }: Pick<ClusterRecord, 'folder'>) =>
  JSON.parse(await readFile(join(folder, preparedFiles.details), 'utf8')) as ClusterProfileDetail[]
