import { parseSubnet, isInSubnet, networkOf, spellSubnet } from '../base/subnet.ts'
import { isLinkLocal } from '../base/address.ts'
import { refusedField } from '../errors/refused-field.ts'
import { parseNoProxy, parseProxy } from '../outgoing/proxy.ts'
import { readAuthorityList } from './authorities.ts'
import type { EdgeHostConfigurations } from './schemas.ts'
import type { Wanted } from './store.ts'

/** Networks and addresses of the cluster of this host. */
export interface ClusterRanges {
  /** Networks of pods and services, as CIDR. */
  readonly networks: readonly string[]
  /** Addresses of the node and of its control plane, which may be a virtual one. */
  readonly addresses: readonly string[]
}

export const nothing: Wanted = {
  caCerts: [],
  certificates: [],
  httpProxy: undefined,
  httpsProxy: undefined,
  noProxy: '',
}

/** Domains of names in the cluster. */
const ofCluster = ['.svc', '.cluster.local']
const loopback = ['localhost', '127.0.0.0/8', '::1']

/**
 * Reads what a user has sent. Empty counts as not given.
 * @param present whose passwords stand in for masks
 * @param now milliseconds since 1970
 * @throws AppError BadRequest that names the field
 */
export function readConfiguration(
  { caCerts = [], noProxy = '', ...proxies }: EdgeHostConfigurations,
  present: Wanted,
  now: number,
): Wanted {
  const proxy = (field: 'httpProxy' | 'httpsProxy') => {
    const text = proxies[field] ?? ''
    if (text === '') return undefined
    try {
      const { url, shown, isMasked } = parseProxy(text)
      if (!isMasked) return url
      // Another host or user would get a password that was not meant for it.
      const former = present[field]
      if (former !== undefined && parseProxy(former).shown === shown) return former
    } catch (error) {
      throw refusedField(field, (error as Error).message)
    }
    throw refusedField(
      field,
      'has a mask in place of the password, and the present proxy has another scheme, user, host or port, or no password; send the password',
    )
  }
  let exemptions: readonly string[]
  try {
    exemptions = parseNoProxy(noProxy)
  } catch (error) {
    throw refusedField('noProxy', (error as Error).message)
  }
  return {
    caCerts: caCerts.map((each) => each.replace(/\s+/g, '')),
    certificates: readAuthorityList(caCerts, 'caCerts', now),
    httpProxy: proxy('httpProxy'),
    httpsProxy: proxy('httpsProxy'),
    noProxy: exemptions.join(','),
  }
}

/** The configuration in a reply, with masks. */
export function shownConfiguration({
  caCerts,
  httpProxy,
  httpsProxy,
  noProxy,
}: Wanted): EdgeHostConfigurations {
  return {
    ...(caCerts.length === 0 ? {} : { caCerts: [...caCerts] }),
    ...(httpProxy === undefined ? {} : { httpProxy: parseProxy(httpProxy).shown }),
    ...(httpsProxy === undefined ? {} : { httpsProxy: parseProxy(httpsProxy).shown }),
    ...(noProxy === '' ? {} : { noProxy }),
  }
}

/** Whether two configurations ask for the same. Pure. */
export const isSame = (one: Wanted, other: Wanted): boolean =>
  one.httpProxy === other.httpProxy &&
  one.httpsProxy === other.httpsProxy &&
  one.noProxy === other.noProxy &&
  areSameTexts(one.certificates, other.certificates)

const areSameTexts = (one: readonly string[], other: readonly string[]) =>
  JSON.stringify(one.toSorted()) === JSON.stringify(other.toSorted())

/** What differs, a line each, without passwords. Pure. */
export function differences(before: Wanted, after: Wanted): readonly string[] {
  const [old, now] = [shownConfiguration(before), shownConfiguration(after)]
  const texts = (['httpProxy', 'httpsProxy', 'noProxy'] as const).flatMap((field) => {
    if (before[field] === after[field]) return []
    const isPassword = old[field] === now[field]
    return [
      `${field}: ${isPassword ? 'another password' : `${old[field] ?? 'none'} -> ${now[field] ?? 'none'}`}`,
    ]
  })
  const added = after.certificates.filter((each) => !before.certificates.includes(each)).length
  const removed = before.certificates.filter((each) => !after.certificates.includes(each)).length
  const authorities = [
    ...(added === 0 ? [] : [`${added} added`]),
    ...(removed === 0 ? [] : [`${removed} removed`]),
  ]
  return authorities.length === 0 ? texts : [...texts, `caCerts: ${authorities.join(', ')}`]
}

/** The networks of the links of a host, of addresses as `192.0.2.7/24`. Pure. */
export function networksOfLinks(addresses: readonly string[]): readonly string[] {
  const found = addresses.flatMap((address) => {
    const subnet = parseSubnet(address)
    return subnet === undefined || isLinkLocal(subnet.address) ? [] : [spellSubnet(networkOf(subnet))]
  })
  return [...new Set(found)]
}

/**
 * All that needs no proxy: what the user has named, loopback, and where there is a cluster its networks and addresses.
 * @param ranges networks of this host
 */
export function exemptionsOf(
  { noProxy }: Pick<Wanted, 'noProxy'>,
  ranges: readonly string[],
  cluster: ClusterRanges,
): readonly string[] {
  const covered = cluster.networks.concat(ranges).flatMap((each) => parseSubnet(each) ?? [])
  return [
    ...new Set([
      ...parseNoProxy(noProxy),
      ...loopback,
      ...ranges,
      ...cluster.networks,
      ...cluster.addresses.filter((address) => !covered.some((subnet) => isInSubnet(address, subnet))),
      ...ofCluster,
    ]),
  ]
}

/**
 * The file with the proxies for containerd and the kubelet, systemd.exec(5), EnvironmentFile=; empty without a proxy. The values were parsed: they have no
 * quote, line end or backslash, and systemd reads `%` of such a file as it is.
 */
export function environmentOf({ httpProxy, httpsProxy }: Wanted, exemptions: readonly string[]): string {
  if (httpProxy === undefined && httpsProxy === undefined) return ''
  const values = { HTTP_PROXY: httpProxy, HTTPS_PROXY: httpsProxy, NO_PROXY: exemptions.join(',') }
  return Object.entries(values)
    .flatMap(([name, value]) =>
      value === undefined ? [] : [name, name.toLowerCase()].map((each) => `${each}="${value}"\n`),
    )
    .join('')
}
