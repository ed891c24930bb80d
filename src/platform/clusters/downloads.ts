import type { ClusterHead, ClusterStore } from './store.ts'
import type { FileHandle } from 'node:fs/promises'
import {
  resolvedPacks,
  deliveredDefinition,
  deliveryFrame,
  type DeliveryFrame,
} from '../../definition/examination/protocol.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Seal } from '../../secrets/seal.ts'
import { platformErrors } from '../codes.ts'
import type { KeptFolders } from '../kept-folders.ts'
import type { Profiles } from '../profiles/profiles.ts'
import type { ClusterTemplate } from './schemas.ts'

/** The cluster of each host without asking the database, since each heartbeat asks. */
export interface DesiredIndex {
  /** The cluster of a host. */
  clusterOn(hostUid: string): { readonly uid: string; readonly name: string } | undefined
  /** `Edgehost-Wanted` for a host, a dictionary of RFC 9651; undefined where it has no desired state. */
  headerFor(hostUid: string): string | undefined
  /** Called when a change of the cluster of a host is committed. */
  refresh(hostUid: string): void
}

/** The entity tag of the download of a host, without its quotes. */
const tagOf = ({ number, digest }: Pick<ClusterHead, 'number' | 'digest'>): string =>
  `${number}-${digest.slice(0, 32)}`

export function createDesiredIndex(store: Pick<ClusterStore, 'all' | 'findOn'>): DesiredIndex {
  const byHost = new Map<string, { uid: string; name: string; header: string | undefined }>()
  const toEntry = (cluster: ClusterHead) => ({
    uid: cluster.uid,
    name: cluster.name,
    header:
      cluster.digest === ''
        ? undefined
        : `number=${cluster.number}, etag="${tagOf(cluster)}", uid="${cluster.uid}"${
            cluster.deleteRequestedAt === undefined ? '' : ', deletion=1'
          }`,
  })
  for (const cluster of store.all()) byHost.set(cluster.hostUid, toEntry(cluster))
  return {
    clusterOn(hostUid) {
      const entry = byHost.get(hostUid)
      return entry && { uid: entry.uid, name: entry.name }
    },
    headerFor: (hostUid) => byHost.get(hostUid)?.header,
    refresh(hostUid) {
      const cluster = store.findOn(hostUid)
      if (cluster) byHost.set(hostUid, toEntry(cluster))
      else byHost.delete(hostUid)
    },
  }
}

/** The download of a host. */
export interface Download {
  /** With its quotes. */
  readonly etag: string
  /** `Repr-Digest`, RFC 9530. */
  readonly reprDigest: string
  readonly definitionBytes: number
  /** The bytes before and after the definition; they are decrypted here. @throws AppError SecretReplaced */
  frame(): DeliveryFrame
  /** Opens the definition; the caller closes it. Undefined where there is none. */
  open(): Promise<FileHandle | undefined>
}

export interface Downloads {
  /** The desired state of a host. @throws AppError NotFound where there is none */
  desiredOf(hostUid: string): Download
  /** The profiles of the cluster of a host, without values; undefined where it has no cluster. */
  profilesOn(hostUid: string): readonly ClusterTemplate[] | undefined
  /**
   * The same with the values of the packs after variables and macros, sensitive ones masked, JSON; the caller closes it. Undefined where the
   * host has no cluster, or shall delete it, and where a draft with sensitive variables was changed since: a value that is sensitive now may be in it.
   */
  openResolved(hostUid: string): Promise<FileHandle | undefined>
}

export function createDownloads({
  store,
  folders,
  profiles,
  seal,
}: {
  readonly store: Pick<ClusterStore, 'findOn' | 'description'>
  readonly folders: Pick<KeptFolders, 'open'>
  readonly profiles: Pick<Profiles, 'findUsable'>
  readonly seal: Seal
}): Downloads {
  return {
    desiredOf(hostUid) {
      const cluster = store.findOn(hostUid)
      if (!cluster || cluster.digest === '')
        throw new AppError(generalErrors.NotFound, 'nothing is wanted of this host')
      const { uid, name, digest, filesUid, definitionBytes } = cluster
      return {
        frame() {
          const sealed = store.description(uid)
          const head = sealed && seal.open(sealed)
          if (head !== undefined)
            return deliveryFrame(Buffer.from(head), filesUid === '' ? undefined : definitionBytes)
          throw new AppError(
            platformErrors.SecretReplaced,
            `the sensitive values of the cluster ${name} cannot be read any more`,
          )
        },
        etag: `"${tagOf(cluster)}"`,
        reprDigest: `sha-256=:${Buffer.from(digest, 'hex').toString('base64')}:`,
        definitionBytes,
        open: async () => (filesUid === '' ? undefined : folders.open(filesUid, deliveredDefinition)),
      }
    },
    profilesOn: (hostUid) => store.findOn(hostUid)?.templates,
    async openResolved(hostUid) {
      const cluster = store.findOn(hostUid)
      if (!cluster || cluster.filesUid === '') return undefined
      const isOutdated = cluster.templates.some(({ uid }) => {
        const profile = profiles.findUsable(uid, cluster.projectUid)
        const isSecret = profile?.shownVariables.some(({ isSensitive }) => isSensitive === true) === true
        return isSecret && profile.modifiedAt >= cluster.modifiedAt
      })
      return isOutdated ? undefined : folders.open(cluster.filesUid, resolvedPacks)
    },
  }
}
