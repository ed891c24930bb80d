import type { ClusterProfile } from '../../../platform/profiles/schemas.ts'
import { useReading } from '../../shared/read.ts'
import { placeProject } from '../../shared/shell.tsx'
import { scoped } from '../platform.ts'

const parameters = {
  orderBy: 'metadata.name=1,spec.version=-1',
  fields: 'metadata.name,metadata.uid,spec.version,status.isPublished',
}

/** The profiles that a cluster of the scope may use: those of the scope, and those of the tenant. By name, the newest version first. */
export function useProfiles(): readonly ClusterProfile[] {
  const path = '/v1/clusterprofiles'
  const own = useReading<{ items: readonly ClusterProfile[] }>(scoped(path, parameters), 60_000)
  const ofTenant = useReading<{ items: readonly ClusterProfile[] }>(
    placeProject.value === undefined ? undefined : scoped(path, { ...parameters, ofTenant: 'true' }),
    60_000,
  )
  return [...(own.body?.items ?? []), ...(ofTenant.body?.items ?? [])]
}
