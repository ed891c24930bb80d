import { hidden, type Compared } from '../../base/described-change.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { ClusterProfile, type Variable } from '../schemas/profiles.ts'
import type { ProfileHead, ProfileRecord } from './profile-store.ts'

/** What queries of the list of profiles may name. */
export const profileList: ListResource<SqlField> = {
  name: 'cluster profiles',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'metadata.lastModifiedTimestamp': { type: 'time', column: 'modified_at' },
    'spec.version': textColumn('version'),
    'status.isPublished': { type: 'boolean', column: 'is_published' },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: ClusterProfile,
}

/** A cluster that uses a profile. */
export interface UsingCluster {
  readonly uid: string
  readonly name: string
  readonly projectUid: string
}

/** What is known of a profile beside its record. */
export interface ProfileUses {
  readonly clusters: readonly UsingCluster[]
  /** For each pack the uid that it means now; empty for none. */
  readonly packUids: readonly string[]
}

/** A profile in lists: its packs without values. */
export function toClusterProfile(profile: ProfileHead, { clusters, packUids }: ProfileUses): ClusterProfile {
  const template = {
    ...{ cloudType: profile.cloudType, name: profile.name, profileVersion: profile.version },
    ...{ type: profile.type, uid: profile.uid },
    packs: profile.packs.map(({ name, tag, layer, type, version }, index) => ({
      ...{ name, tag, layer: layer || 'addon', type: type || 'spectro' },
      ...(version === '' ? {} : { version }),
      packUid: packUids[index] ?? '',
    })),
  }
  return {
    apiVersion: 'v1',
    kind: 'ClusterProfile',
    metadata: {
      annotations: {
        ...(profile.description === '' ? {} : { description: profile.description }),
        ...profile.annotations,
      },
      creationTimestamp: formatTime(profile.createdAt),
      labels: profile.labels,
      lastModifiedTimestamp: formatTime(profile.modifiedAt),
      ...{ name: profile.name, uid: profile.uid },
    },
    spec: {
      ...(profile.isPublished ? { published: template } : { draft: template }),
      version: profile.version,
    },
    status: {
      hasUserMacros: profile.hasUserMacros,
      inUseClusterUids: clusters.map(({ uid }) => uid),
      inUseClusters: clusters.map((cluster) => ({ kind: 'spectrocluster', ...cluster })),
      isPublished: profile.isPublished,
    },
  }
}

/** What the audit trail compares of a profile. Pure. @param stored its variables, with the sensitive values; undefined where they cannot be read */
export function comparedProfile(profile: ProfileRecord, stored: readonly Variable[] | undefined): Compared {
  const { name, version, type, cloudType, description, labels, annotations, isPublished } = profile
  return {
    name,
    version,
    type,
    cloudType,
    description,
    labels,
    annotations,
    isPublished,
    packs: profile.packs.map(({ name: pack, tag }) => ({ name: pack, tag })),
    variables: (stored ?? profile.shownVariables).map(({ isSensitive = false, ...variable }) => ({
      ...variable,
      isSensitive,
      ...(isSensitive
        ? {
            defaultValue: hidden(variable.defaultValue ?? ''),
            options: hidden(variable.options ? JSON.stringify(variable.options) : ''),
          }
        : {}),
    })),
  }
}
