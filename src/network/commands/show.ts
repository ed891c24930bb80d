import { prefixLengthOf } from '../../base/subnet.ts'
import type { Context } from '../../ctl/client.ts'
import { type Column, type Fact, type Paper, renderFacts, renderTable } from '../../ctl/layout.ts'
import type {
  Bond,
  BondList,
  Bridge,
  BridgeList,
  NicSummary,
  NicSummaryList,
  Vlan,
  VlanList,
} from '../schemas.ts'

const root = '/v1/edge-mgmt/network'

type Shown = { readonly kind: string } & (NicSummary | Bond | Vlan | Bridge)

/** All links in one list, NICs first; each kind has an endpoint of its own. */
export async function readAll({ client }: Pick<Context, 'client'>) {
  const { interfaces, problems = [] } = await client.get<NicSummaryList>(`${root}/interfaces`, ['interfaces'])
  const bonds = await client.get<BondList>(`${root}/bonds`, ['items'])
  const vlans = await client.get<VlanList>(`${root}/vlans`, ['items'])
  const bridges = await client.get<BridgeList>(`${root}/bridges`, ['items'])
  const as = (kind: string) => (link: Bond | Vlan | Bridge) => ({ ...link, kind })
  const items: Shown[] = [
    ...interfaces,
    ...bonds.items.map(as('bond')),
    ...vlans.items.map(as('vlan')),
    ...bridges.items.map(as('bridge')),
  ]
  return { items, problems }
}

const layout: readonly Column<Shown>[] = [
  { title: 'LINK', read: ({ name, isClusterNIC }) => (isClusterNIC ? `${name} *` : name) },
  { title: 'KIND', read: ({ kind }) => kind },
  { title: 'STATUS', read: ({ status }) => status },
  { title: 'TYPE', read: (link) => link.type },
  { title: 'ADDRESS', read: ({ ip, subnet = '' }) => ip && `${ip}/${prefixLengthOf(subnet)}` },
  { title: 'GATEWAY', read: ({ gateway }) => gateway },
  { title: 'PART OF', read: masterOf },
  { title: 'OWNER', read: ({ owner }) => owner, isFlexible: true },
  { title: 'CHANGE', read: ({ isWritable }) => (isWritable ? 'yes' : 'no') },
]

function masterOf(link: Shown): string | undefined {
  const bond = 'bondName' in link ? link.bondName : ''
  const bridge = 'bridgeName' in link ? link.bridgeName : ''
  return bond || bridge || ('parentName' in link ? link.parentName : undefined)
}

/** `network list`. */
export async function listLinks(context: Context): Promise<undefined> {
  const found = await readAll(context)
  await context.output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  for (const problem of found.problems) context.output.note(problem)
  return undefined
}

/** `network show NAME`. */
export async function showLink(context: Context): Promise<undefined> {
  const [name = ''] = context.line.arguments
  const { items } = await readAll(context)
  // The endpoint of interfaces names the fault of a name that is in no list.
  const link =
    items.find((each) => each.name === name) ??
    (await context.client.get<NicSummary>(`${root}/interfaces/${encodeURIComponent(name)}`, ['name']))
  await context.output.show(link, (paper) => render(link, paper))
  return undefined
}

function render(link: Shown, paper: Paper): string {
  const tables = [
    renderFacts(factsOf(link), paper),
    ...(link.addresses.length > 0 ? [renderTable(link.addresses, addressLayout, paper.columns)] : []),
    ...(link.routes.length > 0 ? [renderTable(link.routes, routeLayout, paper.columns)] : []),
  ]
  return tables.join('\n')
}

function factsOf(link: Shown): Fact[] {
  const fact = (label: string, ...parts: readonly (string | undefined)[]): Fact[] => {
    const text = parts.filter((part) => part !== undefined && part !== '').join(' ')
    return text === '' ? [] : [{ label, lines: [text] }]
  }
  const { configured } = link
  return [
    ...fact('Link', link.name),
    ...fact('Kind', link.kind, 'vlanID' in link ? link.vlanID : undefined),
    ...fact('Status', link.status),
    ...fact('Owner', link.owner, `(${link.configStatus})`),
    ...fact('MAC', link.mac),
    ...fact('MTU', String(link.mtu)),
    ...fact('Part of', masterOf(link)),
    ...('members' in link ? fact('Members', link.members.join(', ')) : []),
    ...('mode' in link ? fact('Mode', link.mode) : []),
    ...('stpEnabled' in link ? fact('Spanning tree', link.stpEnabled ? 'on' : 'off') : []),
    ...fact('Gateway', link.gateway),
    ...fact('Name servers', link.nameservers.join(' ')),
    ...fact('Search', link.searchDomains.join(' ')),
    ...fact('Cluster', link.isClusterNIC ? 'an address of the cluster of this host is on it' : undefined),
    ...(configured === undefined
      ? fact('Configured', 'no file is for it')
      : [
          ...fact('Configured', [configured.type, ...configured.addresses].join(' ')),
          ...fact('Routes given', configured.routes.map(routeText).join(', ')),
          ...fact('Files', configured.files.join(', ')),
        ]),
    ...(link.notWritableReason === undefined
      ? []
      : [{ label: 'No change here', lines: [link.notWritableReason], mood: 'warning' as const }]),
  ]
}

const routeText = ({ destination, gateway }: { readonly destination: string; readonly gateway?: string }) =>
  gateway === undefined ? destination : `${destination} via ${gateway}`

const addressLayout: readonly Column<Shown['addresses'][number]>[] = [
  { title: 'ADDRESS', read: ({ address, prefixLength }) => `${address}/${prefixLength}`, isFlexible: true },
  { title: 'SCOPE', read: ({ scope }) => scope },
  { title: 'ORIGIN', read: ({ isDynamic }) => (isDynamic ? 'leased' : 'given') },
]

const routeLayout: readonly Column<Shown['routes'][number]>[] = [
  {
    title: 'ROUTE',
    read: ({ destination, family }) => (destination === 'default' ? `default (${family})` : destination),
    isFlexible: true,
  },
  { title: 'GATEWAY', read: ({ gateway }) => gateway, isFlexible: true },
  { title: 'METRIC', read: ({ metric }) => String(metric) },
  { title: 'BY', read: ({ protocol }) => protocol },
  { title: 'TABLE', read: ({ table }) => table },
]
