import { canonicalAddress, isAddress } from '../../base/address.ts'
import { isUnset } from '../../base/field-stance.ts'
import { AppError } from '../../errors/app-error.ts'
import { clusterErrors } from '../codes.ts'
import { changedFixedSettings, saidOfFixed } from '../engine/reconfigure/fixed-settings.ts'
import type { PreflightProblem } from '../problem.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { Wanted, WantedNode } from '../wanted.ts'
import { isOlder, skewOf } from './version.ts'

const cloudPath = 'spec.cloudConfig.spec'
const poolPath = `${cloudPath}.machinePoolConfig[0]`

/**
 * Refuses what a cluster has for its whole life. Empty fields of the node mean: as it is.
 * @param shown what GET gives, with the fields that the host itself sets
 * @throws AppError CannotChange that names the field
 */
export function refuseFixed(
  next: ClusterConfiguration & { readonly status?: unknown },
  shown: ClusterConfiguration,
  node: WantedNode,
): void {
  const { metadata = {} } = next
  const stays = (field: string, given: string | undefined, present: string | undefined) => {
    if ((given ?? '') !== '' && given !== (present ?? ''))
      throw refuse(field, `stays ${JSON.stringify(present)}`)
  }
  if (!isUnset(next.status)) throw refuse('status', 'is what the host says; leave it out')
  stays('metadata.name', metadata.name, shown.metadata?.name)
  stays('metadata.id', metadata.id, shown.metadata?.id)
  const { creationTimestamp: created = '' } = metadata
  if (created !== '' && Date.parse(created) !== Date.parse(shown.metadata?.creationTimestamp ?? ''))
    throw refuse('metadata.creationTimestamp', 'is what the host says; leave it as GET gives it')

  const endpoint = endpointIn(next)
  if (endpoint !== endpointIn(shown) && endpoint !== canonical(node.endpoint))
    throw refuse(
      `${cloudPath}.clusterConfig.controlPlaneEndpoint.host`,
      `stays ${JSON.stringify(endpointIn(shown) || canonical(node.endpoint))}: certificates and clients of the cluster have it`,
    )
  const [pool] = next.spec?.cloudConfig?.spec?.machinePoolConfig ?? []
  const [host] = pool?.hosts ?? []
  stays(`${poolPath}.name`, pool?.name, node.poolName)
  stays(`${poolPath}.hosts[0].hostName`, host?.hostName, node.name)
  const [was] = shown.spec?.cloudConfig?.spec?.machinePoolConfig?.[0]?.hosts ?? []
  for (const field of ['networkInfo', 'nic', 'nicName', 'staticIP'] as const)
    if (!isUnset(host?.[field]) && JSON.stringify(host?.[field]) !== JSON.stringify(was?.[field]))
      throw refuse(`${poolPath}.hosts[0].${field}`, `stays as the cluster was created, at ${node.address}`)
  stays(`${poolPath}.hosts[0].hostAddress`, host?.hostAddress && canonical(host.hostAddress), node.address)
}

const endpointIn = ({ spec }: ClusterConfiguration) =>
  canonical(spec?.cloudConfig?.spec?.clusterConfig?.controlPlaneEndpoint?.host ?? '')

const canonical = (text: string) => (isAddress(text.trim()) ? canonicalAddress(text.trim()) : text.trim())

const refuse = (field: string, reason: string) =>
  new AppError(clusterErrors.CannotChange, `${field} cannot be changed: it ${reason}`, { details: { field } })

/**
 * What of another definition, or of other values of its packs, a cluster cannot take; pure.
 * @param hasCopy whether a copy of the wanted version of Kubernetes is kept, and may be restored
 */
export function judgeFixed(next: Wanted, present: Wanted, hasCopy: boolean): readonly PreflightProblem[] {
  const found: PreflightProblem[] = []
  const add = (
    message: string,
    pack: string,
    path = 'spec.archiveUploadPath',
    code: PreflightProblem['code'] = 'CannotChange',
  ) => found.push({ code, severity: 'error', message, pack, path })
  const { pack } = next.kubernetes
  // What could not be prepared has problems of its own.
  if (pack !== '' && pack !== present.kubernetes.pack)
    add(
      `the cluster is made by the pack ${present.kubernetes.pack}, not by ${pack}; take a definition with it`,
      pack,
    )
  const [version, now] = [next.kubernetes.version, present.kubernetes.version]
  const isRestored = hasCopy && isOlder(version, now)
  const skew = version === '' || isRestored ? undefined : skewOf(now, version)
  if (skew !== undefined) add(skew, pack, undefined, 'VersionSkew')
  const networkPack = ({ packs }: Wanted) => packs.find(({ layer }) => layer === 'cni')?.name
  const [was, is] = [networkPack(present), networkPack(next)]
  if (was !== undefined && is !== undefined && was !== is)
    add(`the network of the cluster is made by the pack ${was}, not by ${is}; take a definition with it`, is)
  try {
    for (const setting of changedFixedSettings(present.kubernetes, next.kubernetes))
      add(saidOfFixed(setting, pack), pack, `cluster.config.${setting.path}`)
  } catch {
    // The engine reports a text that cannot be read.
  }
  return found
}
