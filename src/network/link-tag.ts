// The ETag of a link: a hash for each field that a request may write, in a fixed order, so that the refusal of a change can name the fields that have
// another value by now. It is made of what is configured: addresses by DHCP, carriers and routes come and go by themselves. Pure.

import { createHash } from 'node:crypto'
import { requireTag } from '../errors/refused-field.ts'
import { firstIpv4 } from './links/configuration.ts'
import type { Link } from './links/links.ts'
import { toBond, toBridge, toVlan } from './wire.ts'

/** Fields of the requests for links, and of the replies. */
const fields = [
  ...['type', 'ip', 'subnet', 'gateway', 'mtu', 'nameservers', 'members'],
  ...['mode', 'miiMonitorSec', 'lacpTransmitRate', 'transmitHashPolicy'],
  ...['parentName', 'parentType', 'vlanID', 'stpEnabled'],
] as const

/** Characters of the hash of a field. */
const width = 6

function writableOf(link: Link, all: readonly Link[]): Readonly<Record<string, unknown>> {
  const { configured } = link.owner
  const [ip, length] = firstIpv4(configured?.addresses ?? [])?.split('/') ?? []
  const shown = { clusterAddresses: new Set<string>() }
  return {
    ...ofKind(link, all, shown),
    type: configured?.type,
    ip,
    subnet: length,
    gateway: configured?.gateway,
    mtu: configured?.mtu,
    nameservers: configured?.nameservers,
  }
}

function ofKind(
  link: Link,
  all: readonly Link[],
  shown: Parameters<typeof toBond>[2],
): Readonly<Record<string, unknown>> {
  if (link.kind === 'bond') return toBond(link, all, shown)
  if (link.kind === 'vlan') return toVlan(link, all, shown)
  if (link.kind === 'bridge') return toBridge(link, all, shown)
  return {}
}

const hashOf = (value: unknown) =>
  createHash('sha256')
    .update(JSON.stringify(value ?? null))
    .digest('base64url')
    .slice(0, width)

/** The entity tag of what a request may write of a link. */
export function linkTag(link: Link, all: readonly Link[]): string {
  const writable = writableOf(link, all)
  return `"${fields.map((field) => hashOf(writable[field])).join('')}"`
}

/**
 * Refuses a change that `If-Match` allows for another configuration of the link only.
 * @param link undefined where there is none of the name, which no tag names
 * @throws AppError PreconditionFailed, 412, with the fields that have another value in `details.changed`
 */
export function requireLinkTag(
  ifMatch: string | undefined,
  name: string,
  link: Link | undefined,
  all: readonly Link[],
): void {
  if (ifMatch === undefined) return
  if (link === undefined) {
    requireTag('""', '', `there is no link ${name} now; without If-Match the request makes it`)
    return
  }
  const tag = linkTag(link, all)
  const [read = ''] = ifMatch.split(',').map((each) => each.trim())
  const changed =
    read.length === tag.length
      ? fields.filter((_, at) => part(read, at) !== part(tag, at))
      : /* of another link, or no tag of ours */ []
  requireTag(
    ifMatch,
    tag,
    `${changed.join(', ') || 'the configuration'} of ${name} changed since it was read; read it again, and change that`,
    { name, changed: [...changed] },
  )
}

/** The hash of a field in a tag. */
const part = (tag: string, at: number) => tag.slice(1 + at * width, 1 + (at + 1) * width)
