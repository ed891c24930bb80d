import { withoutEndSlashes } from '../../base/end-slashes.ts'
import type { CloudsSettings } from '../config.ts'
import { unavailable } from './cloud-http.ts'
import { objectsIn, textOf } from './json.ts'

const longestUrl = 2_048

/**
 * The URL of a service in the catalogue of a token, without a slash at its end. Pure.
 * @param catalogue as Keystone gives it; of it nothing is known
 * @returns undefined where the service has no such endpoint
 * @throws AppError CloudUnavailable for an endpoint that is not HTTPS or is too long, and where only a region would tell which endpoint is meant
 */
export function chooseEndpoint(
  catalogue: unknown,
  type: 'compute' | 'network',
  { region, interface: wanted }: Pick<CloudsSettings['vendor'], 'region' | 'interface'>,
): string | undefined {
  const endpoints = objectsIn(catalogue)
    .filter((service) => service.type === type)
    .flatMap((service) => objectsIn(service.endpoints))
    .filter((endpoint) => endpoint.interface === wanted)
    .map(({ url, region_id: id, region: name }) => ({ url: textOf(url), region: textOf(id ?? name) }))
    .filter((endpoint) => region === undefined || endpoint.region === region)
  const [first] = endpoints
  if (!first) return undefined
  // Without their names, which are text of the cloud.
  if (endpoints.some((endpoint) => endpoint.region !== first.region))
    throw unavailable('the cloud has several regions (openstack region list): set clouds.vendor.region')
  const { url } = first
  // The token of the account is sent there.
  if (url.length > longestUrl || URL.parse(url)?.protocol !== 'https:')
    throw unavailable(`the ${wanted} endpoint of ${type} in the catalogue of the cloud is no https:// URL`)
  return withoutEndSlashes(url)
}
