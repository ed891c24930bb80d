import type { CloudsSettings } from '../config.ts'
import { unavailable } from './cloud-http.ts'
import { objectsIn, textOf } from './json.ts'

/**
 * The URL of a service in the catalogue of a token, without a slash at its end. Pure.
 * @param catalogue as Keystone gives it; of it nothing is known
 * @returns undefined where the service has no such endpoint
 * @throws AppError CloudUnavailable for an endpoint that is not HTTPS, and where only a region would tell which endpoint is meant
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
  const regions = [...new Set(endpoints.map((endpoint) => endpoint.region))]
  if (regions.length > 1)
    throw unavailable(`the cloud has several regions, ${regions.join(', ')}: set clouds.vendor.region`)
  // The token of the account is sent there.
  if (!URL.canParse(first.url) || new URL(first.url).protocol !== 'https:')
    throw unavailable(`the ${wanted} endpoint of ${type} in the catalogue of the cloud is no https:// URL`)
  return first.url.replace(/\/+$/, '')
}
