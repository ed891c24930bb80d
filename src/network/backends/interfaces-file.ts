// Files of ifupdown: interfaces(5). A write changes the stanza of a link and leaves every other line as it is. Pure.

import { isOfIpv4, prefixLengthOfMask } from '../../base/subnet.ts'
import type {
  ConfiguredRoute,
  DeviceConfiguration,
  LinkConfiguration,
  TextFile,
} from '../links/configuration.ts'

/** The file that ifupdown reads first. */
export const interfacesFile = '/etc/network/interfaces'

/** A stanza `iface` with the file that holds it. */
export interface Stanza {
  readonly file: string
  /** The logical name: the name of the link, where no mapping says otherwise. */
  readonly name: string
  readonly family: string
  readonly method: string
  readonly options: readonly (readonly [key: string, value: string])[]
}

/** Content of all files together. */
export interface Interfaces {
  readonly stanzas: readonly Stanza[]
}

/** Patterns that `source` and `source-directory` name in a file: what has to be read with it. */
export function sourcesOf(text: string, path: string): readonly { pattern: string; isFolder: boolean }[] {
  return logicalLines(text).flatMap((line) => {
    const [, keyword, value] = /^(source|source-directory|source-dir)\s+(\S+)/.exec(line) ?? []
    if (value === undefined) return []
    const pattern = value.startsWith('/') ? value : `${path.replace(/\/[^/]*$/, '')}/${value}`
    return [{ pattern, isFolder: keyword !== 'source' }]
  })
}

/** Whether a line names other files to read. */
export const isSource = (line: string): boolean => /^\s*source(-directory|-dir)?\s/.test(line)

/** Lines with continued ones joined, without comments. */
const logicalLines = (text: string): readonly string[] =>
  text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))

const keywords = new Set([
  'iface',
  'mapping',
  'auto',
  'source',
  'source-directory',
  'source-dir',
  'rename',
  'template',
])
/** Whether a line with this first word begins something new, and does not belong to the stanza before it. */
export const startsStanza = (keyword: string): boolean =>
  keywords.has(keyword) || keyword.startsWith('allow-') || /^no-(auto-down|scripts)$/.test(keyword)

/** Parses files in the order in which ifupdown reads them. */
export function parseInterfaces(files: readonly TextFile[]): Interfaces {
  const stanzas: (Stanza & { options: [string, string][] })[] = []
  for (const { path, text } of files) {
    let current: { options: [string, string][] } | undefined
    for (const line of logicalLines(text)) {
      const [keyword = '', ...rest] = line.split(/\s+/)
      if (keyword === 'iface') {
        const [name = '', family = '', method = ''] = rest
        const inherited =
          rest[1] === 'inherits' ? stanzas.findLast((each) => each.name === rest[2]) : undefined
        const stanza = inherited
          ? { ...inherited, name, file: path, options: [...inherited.options] }
          : { file: path, name, family, method, options: [] }
        stanzas.push(stanza)
        current = stanza
      } else if (startsStanza(keyword)) current = undefined
      else current?.options.push([keyword.replaceAll('_', '-'), line.slice(keyword.length).trim()])
    }
  }
  return { stanzas }
}

const optionOf = ({ options }: Stanza, key: string) => options.find(([name]) => name === key)?.[1]
const wordsOf = (stanza: Stanza, key: string) =>
  stanza.options.filter(([name]) => name === key).flatMap(([, value]) => value.split(/\s+/).filter(Boolean))

/** The address of a stanza in CIDR form; the length of the prefix may be an option of its own, as a mask or a number. */
function addressOf(stanza: Stanza): readonly string[] {
  const address = optionOf(stanza, 'address')
  if (address === undefined || stanza.method !== 'static') return []
  if (address.includes('/')) return [address]
  const mask = optionOf(stanza, 'netmask') ?? ''
  const length = /^\d+$/.test(mask) ? Number(mask) : prefixLengthOfMask(mask)
  return [`${address}/${length ?? (address.includes(':') ? 64 : classOf(address))}`]
}

/** Without a mask ifupdown takes the mask of the class, RFC 791. */
const classOf = (address: string) => {
  const first = Number(address.split('.')[0])
  return first < 128 ? 8 : first < 192 ? 16 : 24
}

/** What the stanzas of a link configure; undefined where there is none. */
export function stanzaConfiguration(
  interfaces: Interfaces,
  name: string,
): (LinkConfiguration & { readonly device?: DeviceConfiguration }) | undefined {
  const own = interfaces.stanzas.filter((stanza) => stanza.name === name)
  const ofMaster = interfaces.stanzas.find((stanza) =>
    ['bridge-ports', 'bond-slaves', 'slaves'].some((key) => wordsOf(stanza, key).includes(name)),
  )
  // A port needs no stanza of its own.
  if (own.length === 0 && ofMaster === undefined) return undefined
  const ofIpv4 = own.filter(({ family }) => family === 'inet')
  const addresses = own.flatMap(addressOf)
  const gateways = own.flatMap((stanza) => optionOf(stanza, 'gateway') ?? [])
  const gateway = gateways.find(isOfIpv4)
  const gateway6 = gateways.find((each) => each.includes(':'))
  const metric = ofIpv4.flatMap((stanza) => optionOf(stanza, 'metric') ?? [])[0]
  const mtu = own.flatMap((stanza) => optionOf(stanza, 'mtu') ?? mtuCommandOf(stanza) ?? [])[0]
  const master = own.flatMap((stanza) => optionOf(stanza, 'bond-master') ?? [])[0] ?? ofMaster?.name
  const device = own.length === 0 ? undefined : deviceOf(own, name)
  return {
    files: [...new Set((own.length > 0 ? own : [ofMaster]).flatMap((stanza) => stanza?.file ?? []))],
    type: ofIpv4.some(({ method }) => method === 'dhcp')
      ? 'dhcp'
      : ofIpv4.some(({ method }) => method === 'static')
        ? 'static'
        : 'none',
    addresses,
    ...(gateway === undefined ? {} : { gateway }),
    ...(gateway6 === undefined ? {} : { gateway6 }),
    ...(metric === undefined ? {} : { metric: Number(metric) }),
    ...(mtu === undefined ? {} : { mtu: Number(mtu) }),
    nameservers: [...new Set(own.flatMap((stanza) => wordsOf(stanza, 'dns-nameservers')))],
    searchDomains: [
      ...new Set(
        own.flatMap((stanza) => [...wordsOf(stanza, 'dns-search'), ...wordsOf(stanza, 'dns-domain')]),
      ),
    ],
    routes: own.flatMap(routesOf),
    rules: own
      .flatMap(({ options }) => options)
      .filter(([key, value]) => /^(post-)?up$/.test(key) && /\bip\s+(-\S+\s+)*rule\s+add\b/.test(value))
      .length,
    ...(master === undefined ? {} : { master }),
    vlans: [],
    ...(device === undefined ? {} : { device }),
  }
}

/** ifupdown has no option for the MTU of a link with DHCP: a command sets it. */
const mtuCommandOf = ({ options }: Stanza) =>
  options.flatMap(([key, value]) =>
    key === 'pre-up' ? (/^ip link set (?:dev )?\S+ mtu (\d+)$/.exec(value)?.[1] ?? []) : [],
  )[0]

/** Routes that commands of a stanza add; ifupdown has no option for them. */
function routesOf({ options }: Stanza): readonly ConfiguredRoute[] {
  return options
    .filter(([key]) => /^(post-)?up$/.test(key))
    .flatMap(([, command]) => {
      const [, destination, rest = ''] =
        /\bip\s+(?:-\S+\s+)*route\s+(?:add|replace)\s+(\S+)(.*)$/.exec(command) ?? []
      if (destination === undefined) return []
      const gateway = /\bvia\s+(\S+)/.exec(rest)?.[1]
      const metric = /\bmetric\s+(\d+)/.exec(rest)?.[1]
      return [
        {
          destination,
          ...(gateway === undefined ? {} : { gateway }),
          ...(metric === undefined ? {} : { metric: Number(metric) }),
        },
      ]
    })
}

/** Bonds, VLANs and bridges by the options of ifenslave(8), vlan-interfaces(5) and bridge-utils-interfaces(5). */
function deviceOf(own: readonly Stanza[], name: string): DeviceConfiguration | undefined {
  const [first] = own
  const option = (...keys: readonly string[]) =>
    own.flatMap((stanza) => keys.flatMap((key) => optionOf(stanza, key) ?? []))[0]
  const file = first?.file ?? ''
  const ports = option('bridge-ports')
  const stp = option('bridge-stp')
  if (ports !== undefined) return { file, ...(stp === undefined ? {} : { isStpOn: /^(on|yes)$/i.test(stp) }) }
  const vlan = /\.(\d+)$/.exec(name)?.[1] ?? /^vlan0*(\d+)$/.exec(name)?.[1]
  if (option('vlan-raw-device') !== undefined || /\.\d+$/.test(name))
    return { file, ...(vlan === undefined ? {} : { vlanId: Number(vlan) }) }
  if (!own.some(({ options }) => options.some(([key]) => /^(bond-(?!master$)|slaves$)/.test(key))))
    return undefined
  const [mode, miimon] = [option('bond-mode'), option('bond-miimon')]
  const [lacpRate, hashPolicy] = [option('bond-lacp-rate'), option('bond-xmit-hash-policy')]
  return {
    file,
    bond: {
      ...(mode === undefined ? {} : { mode }),
      ...(miimon === undefined ? {} : { miimon: Number(miimon) }),
      ...(lacpRate === undefined ? {} : { lacpRate }),
      ...(hashPolicy === undefined ? {} : { hashPolicy }),
    },
  }
}

/** Links of `ifquery --state`, with the logical names of their stanzas: `eth0=eth0`. */
export const parseIfstate = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line.includes('='))
      .map((line) => {
        const at = line.indexOf('=')
        return [line.slice(0, at), line.slice(at + 1).trim()] as const
      }),
  )

/** Name servers and domains of a file of resolvconf(8), in /run/resolvconf/interface. */
export function parseResolvconfRecord(text: string) {
  const values = (keyword: RegExp) =>
    text.split('\n').flatMap((line) => {
      const [first = '', ...rest] = line.trim().split(/\s+/)
      return keyword.test(first) ? rest : []
    })
  return { nameservers: values(/^nameserver$/), searchDomains: values(/^(search|domain)$/) }
}
