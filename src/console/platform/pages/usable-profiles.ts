import type { ClusterProfile } from '../../../platform/profiles/schemas.ts'
import { useReading, type Reading } from '../../shared/read.ts'
import { placeProject } from '../../shared/shell.tsx'
import { scoped } from '../platform.ts'

const parameters = {
  orderBy: 'metadata.name=1,spec.version=-1',
  fields: 'metadata.name,metadata.uid,spec.version,status.isPublished',
}

interface Read {
  readonly items: readonly ClusterProfile[]
}

/**
 * The profiles that a cluster of the scope may use: those of the scope, and those of the tenant. By name, the newest version first. Without a body
 * until both are read.
 */
export function useProfiles(): Reading<Read> {
  const path = '/v1/clusterprofiles'
  const isInProject = placeProject.value !== undefined
  const own = useReading<Read>(scoped(path, parameters), 60_000)
  const ofTenant = useReading<Read>(
    isInProject ? scoped(path, { ...parameters, ofTenant: 'true' }) : undefined,
    60_000,
  )
  const error = own.error ?? ofTenant.error
  const again = () => {
    own.again()
    ofTenant.again()
  }
  if (!own.body || (isInProject && !ofTenant.body)) return error ? { error, again } : { again }
  return { body: { items: [...own.body.items, ...(ofTenant.body?.items ?? [])] }, again }
}
