import { Type, type Static, type TProperties } from 'typebox'

// Wire types. Names and spellings are the service API's; what it has not, IPv6, routes, search domains, the owner and the files, is added.

const text = (description: string) => Type.Optional(Type.String({ description }))
const texts = (description: string) => Type.Array(Type.String(), { description })

const Address = Type.Object({
  address: Type.String(),
  prefixLength: Type.Integer({ minimum: 0 }),
  family: Type.Enum(['ipv4', 'ipv6']),
  scope: Type.String({ description: 'global, or link for an address that is valid on this link only.' }),
  isDynamic: Type.Boolean({ description: 'Whether a DHCP server or a router gave it for a time.' }),
})

const Route = Type.Object({
  destination: Type.String({ description: 'In CIDR form, or default.' }),
  gateway: text('Absent for networks that need none.'),
  family: Type.Enum(['ipv4', 'ipv6']),
  metric: Type.Integer({ description: 'Of two routes the one with the lower metric is used.' }),
  protocol: Type.String({ description: 'Who added it, as ip-route(8) names it: static, dhcp, kernel, ….' }),
  table: Type.String(),
})

const Configured = Type.Object({
  files: texts('Where it stands, the file before its drop-ins.'),
  type: Type.Enum(['dhcp', 'static', 'none'], { description: 'Of IPv4.' }),
  addresses: texts('Given addresses in CIDR form.'),
  gateway: text('Of IPv4.'),
  gateway6: text('Of IPv6.'),
  metric: Type.Optional(Type.Integer({ description: 'Of the default route of IPv4.' })),
  mtu: Type.Optional(Type.Integer()),
  nameservers: texts('Name servers for this link.'),
  searchDomains: texts('After ~: a domain whose names are asked over this link, and that is not searched.'),
  routes: Type.Array(
    Type.Object({
      destination: Type.String(),
      gateway: text('Absent for networks that need none.'),
      metric: Type.Optional(Type.Integer()),
    }),
    { description: 'Given routes but the default ones.' },
  ),
  rules: Type.Integer({ description: 'Number of its routing policy rules.' }),
})

const common = {
  name: Type.String(),
  configStatus: Type.String({
    description:
      'State of the link in the words of its owner, for example configured, configuring, unmanaged.',
  }),
  status: Type.Enum(['up', 'down', 'applying', 'unknown'], {
    description: 'up: it is set up and has a carrier.',
  }),
  ip: text('Address of IPv4: the configured one, else the first one in use.'),
  subnet: text('Its mask, for example 255.255.255.0.'),
  gateway: text('Of IPv4, of the default route over this link.'),
  nameservers: texts('In use over this link, otherwise the configured ones.'),
  mtu: Type.Integer({ description: 'Bytes.' }),
  isClusterNIC: Type.Boolean({ description: 'Whether an address of the cluster of this host is on it.' }),
  mac: text('For example 02:fc:00:00:00:01.'),
  hasCarrier: Type.Boolean(),
  addresses: Type.Array(Address, { description: 'In use, of both families.' }),
  routes: Type.Array(Route, { description: 'In use over this link.' }),
  searchDomains: texts('In use over this link.'),
  owner: Type.String({
    description:
      'Who configures it: systemd-networkd, netplan, NetworkManager, ifupdown; another program, nobody, or several of them.',
  }),
  isWritable: Type.Boolean({ description: 'Whether its configuration can be changed here.' }),
  notWritableReason: text('Why it cannot.'),
  configured: Type.Optional(
    Type.Object(Configured.properties, { description: 'What the files say; absent where none is for it.' }),
  ),
}

const withPublished = <T extends TProperties>(properties: T) => ({ ...common, ...properties })
const addressing = (all: readonly ('dhcp' | 'static' | 'none')[]) =>
  Type.Optional(Type.Enum([...all], { description: 'How it gets its address of IPv4.' }))
const bondName = text('The bond that it is a member of; empty where it is in none.')
const bridgeName = text('The bridge that it is a member of; empty where it is in none.')

export const NicSummary = Type.Object(
  withPublished({
    kind: Type.Enum(['nic', 'wifi']),
    type: addressing(['dhcp', 'static']),
    bondName,
    bridgeName,
  }),
  { title: 'NicSummary' },
)
export type NicSummary = Static<typeof NicSummary>

const problems = Type.Optional(
  texts(
    'What could not be read of the configuration, and why; the links are those of the kernel in any case.',
  ),
)

export const NicSummaryList = Type.Object(
  { interfaces: Type.Array(NicSummary), problems },
  { title: 'NicSummaryList' },
)
export type NicSummaryList = Static<typeof NicSummaryList>

export const Bond = Type.Object(
  withPublished({
    type: addressing(['dhcp', 'static', 'none']),
    bridgeName,
    members: texts('Names of its interfaces.'),
    mode: text('For example active-backup.'),
    miiMonitorSec: text('Seconds between two looks at the carriers of the members; 0: none.'),
    lacpTransmitRate: text('slow or fast, in mode 802.3ad.'),
    transmitHashPolicy: text('For example layer2.'),
  }),
  { title: 'Bond' },
)
export type Bond = Static<typeof Bond>

export const Vlan = Type.Object(
  withPublished({
    type: addressing(['dhcp', 'static', 'none']),
    bridgeName,
    parentName: text('The link that it is on.'),
    parentType: Type.Optional(Type.Enum(['nic', 'bond'])),
    vlanID: Type.String({ description: '1 to 4094.' }),
  }),
  { title: 'VLAN' },
)
export type Vlan = Static<typeof Vlan>

export const Bridge = Type.Object(
  withPublished({
    type: addressing(['dhcp', 'static', 'none']),
    members: texts('Names of its ports that are NICs, bonds and VLANs.'),
    stpEnabled: Type.Optional(
      Type.Boolean({
        description:
          'Whether it uses the spanning tree protocol; absent where the configuration does not say.',
      }),
    ),
  }),
  { title: 'Bridge' },
)
export type Bridge = Static<typeof Bridge>

export const BondList = Type.Object({ items: Type.Array(Bond), problems }, { title: 'BondList' })
export const VlanList = Type.Object({ items: Type.Array(Vlan), problems }, { title: 'VLANList' })
export const BridgeList = Type.Object({ items: Type.Array(Bridge), problems }, { title: 'BridgeList' })
export type BondList = Static<typeof BondList>
export type VlanList = Static<typeof VlanList>
export type BridgeList = Static<typeof BridgeList>

/** Values of the options of a bond, as the API spells them, which is as the kernel does. */
export const bondOptions = {
  mode: ['balance-rr', 'active-backup', 'balance-xor', 'broadcast', '802.3ad', 'balance-tlb', 'balance-alb'],
  lacpTransmitRate: ['slow', 'fast'],
  transmitHashPolicy: ['layer2', 'layer3+4', 'layer2+3', 'encap2+3', 'encap3+4'],
} as const

export const NetworkConfigOptions = Type.Object(
  {
    bond: Type.Object({
      mode: texts('802.3ad is LACP.'),
      lacpTransmitRate: texts('For the mode 802.3ad.'),
      transmitHashPolicy: texts('For the modes balance-xor, 802.3ad and balance-tlb.'),
    }),
  },
  { title: 'NetworkConfigOptions' },
)

const Candidate = Type.Object({
  name: Type.String(),
  type: Type.Enum(['nic', 'bond', 'vlan', 'bridge']),
  ipAddress: text('Absent where it has none; a bridge may be chosen without.'),
  status: Type.Enum(['up', 'down', 'applying', 'unknown']),
})

export const ManagementInterface = Type.Object(
  {
    selected: Type.String({ description: 'Empty: the interface of the default route.' }),
    candidates: Type.Array(Candidate),
  },
  { title: 'ManagementInterface' },
)
export type ManagementInterface = Static<typeof ManagementInterface>

/** Body of `PUT /network/management-interface`. */
export const ManagementRequest = Type.Object(
  { name: Type.String({ description: 'One of the candidates; empty: the link of the default route.' }) },
  { title: 'ManagementInterfaceUpdateRequest' },
)
export type ManagementRequest = Static<typeof ManagementRequest>

const addressingOfRequest = {
  ip: text('Address of IPv4; with the type static.'),
  subnet: text('Its mask, for example 255.255.255.0; with the type static.'),
  gateway: text('With the type static; absent or empty: no default route over this link.'),
  mtu: Type.Optional(Type.Integer({ description: 'Absent: as it is.' })),
  nameservers: Type.Optional(
    Type.Array(Type.String(), { maxItems: 16, description: 'Absent: as they are; empty: none.' }),
  ),
}
const ofMembers = (description: string) =>
  Type.Array(Type.String({ maxLength: 15 }), { maxItems: 32, description })

/** Body of `PUT /network/interfaces/{name}/config`. */
export const NicRequest = Type.Object(
  {
    ...addressingOfRequest,
    name: text('The name in the path.'),
    type: Type.Enum(['dhcp', 'static']),
    vlanID: text('Refused: a VLAN is made by POST of vlans.'),
  },
  { title: 'NetworkInterfaceUpdateRequest' },
)
export type NicRequest = Static<typeof NicRequest>

/** Body of `PUT` and `POST /network/bonds/{name}`. */
export const BondRequest = Type.Object(
  {
    ...addressingOfRequest,
    name: text('The name in the path.'),
    type: addressing(['dhcp', 'static', 'none']),
    members: ofMembers('Names of NICs.'),
    mode: text('Absent in a new bond: active-backup.'),
    miiMonitorSec: text('Seconds, for example 0.1, which is the default of a new bond.'),
    lacpTransmitRate: text('With the mode 802.3ad.'),
    transmitHashPolicy: text('With the modes balance-xor, 802.3ad and balance-tlb.'),
    vlanID: text('Refused: a VLAN is made by POST of vlans.'),
  },
  { title: 'BondRequest' },
)
export type BondRequest = Static<typeof BondRequest>

/** Body of `PUT` and `POST /network/vlans/{name}`. */
export const VlanRequest = Type.Object(
  {
    ...addressingOfRequest,
    type: addressing(['dhcp', 'static']),
    parentName: Type.String({ minLength: 1, maxLength: 15 }),
    parentType: Type.Enum(['nic', 'bond']),
    vlanID: Type.String({ description: '1 to 4094; the name of the VLAN is PARENT.ID.' }),
  },
  { title: 'VLANRequest' },
)
export type VlanRequest = Static<typeof VlanRequest>

/** Body of `PUT` and `POST /network/bridges/{name}`. */
export const BridgeRequest = Type.Object(
  {
    ...addressingOfRequest,
    name: text('The name in the path.'),
    type: addressing(['dhcp', 'static', 'none']),
    members: Type.Optional(ofMembers('Names of NICs, bonds and VLANs.')),
    stpEnabled: Type.Optional(
      Type.Union([Type.Boolean(), Type.Null()], {
        description: 'Absent or null: nothing is written of the spanning tree protocol.',
      }),
    ),
  },
  { title: 'BridgeRequest' },
)
export type BridgeRequest = Static<typeof BridgeRequest>

/** Reply of a write that begins a trial. */
export const NetworkChangeAccepted = Type.Object(
  {
    message: Type.String(),
    uid: text('Of the change, see GET /network/changes; absent where nothing has to be changed.'),
  },
  { title: 'NetworkChangeAccepted' },
)
export type NetworkChangeAccepted = Static<typeof NetworkChangeAccepted>

/** Reply of a write with `dryRun`. */
export const NetworkDryRun = Type.Object(
  {
    problems: Type.Array(
      Type.Object({
        field: Type.String({ description: 'Field of the request.' }),
        reason: Type.String({ description: 'Continues the sentence that the field begins.' }),
      }),
      { description: 'All that speaks against the change; empty: it would be begun.' },
    ),
    warnings: texts('What does not prevent it.'),
    lostRoutes: texts('Routes that would go.'),
    reachableBy: texts('Addresses under which the host would be reached; one by DHCP is not known before.'),
    summary: text('Absent where there are problems, or nothing has to be changed.'),
  },
  { title: 'NetworkDryRun' },
)
export type NetworkDryRun = Static<typeof NetworkDryRun>

/** States of a change, and what may follow: docs/network.md. */
export const changeStates = [
  'applying',
  'trial',
  'confirming',
  'confirmed',
  'reverting',
  'reverted',
  'revertFailed',
] as const

/** Why a change was taken back. */
export const revertReasons = ['asked', 'deadline', 'failed', 'reboot'] as const

export const NetworkChange = Type.Object(
  {
    uid: Type.String({ description: 'A UUID.' }),
    summary: Type.String({ description: 'What it changes, for example eth1: address 192.0.2.9/24.' }),
    state: Type.Enum([...changeStates], {
      description:
        'trial: it is applied, and is taken back at deadlineTimestamp unless it is confirmed. revertFailed: it was taken back, but the network is not as before; message says what differs.',
    }),
    reason: Type.Optional(
      Type.Enum([...revertReasons], {
        description:
          'Why it was taken back. failed: without carrier, address or an answer of the gateway; message says which. reboot: the host was started again before it was confirmed.',
      }),
    ),
    message: Type.Optional(Type.String()),
    backend: Type.Enum(['networkd', 'netplan', 'networkmanager', 'ifupdown'], {
      description: 'What owns the links.',
    }),
    links: Type.Array(Type.String(), { description: 'The links that it touches.' }),
    lost: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Addresses and routes that something else had put on the links, and that the network as it is in the trial cannot have.',
      }),
    ),
    requestedBy: Type.String({ description: 'Account of the user.' }),
    needsNewWay: Type.Boolean({
      description:
        'Whether it touches the way by which it was asked for: it is then confirmed on a new TLS connection to an address that the host has now.',
    }),
    needsPlatform: Type.Optional(
      Type.Boolean({
        description:
          'Whether the platform has to be heard since the apply before a request over TLS confirms it: gateway or name servers change, and it answered before.',
      }),
    ),
    confirmBy: Type.Optional(
      Type.Enum(['platform'], { description: 'The next heartbeat after the apply confirms it too.' }),
    ),
    windowSeconds: Type.Integer({ description: 'Time from the request to the deadline.' }),
    creationTimestamp: Type.String({ format: 'date-time' }),
    deadlineTimestamp: Type.String({ format: 'date-time' }),
    appliedTimestamp: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Connections that are accepted later may confirm it.',
      }),
    ),
    endTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'NetworkChange' },
)
export type NetworkChange = Static<typeof NetworkChange>

export const InterfaceOfUserData = Type.Object(
  {
    type: Type.Enum(['static', 'dhcp']),
    ipAddress: text('With the length of its network: 192.0.2.7/24. With the type static.'),
    gateway: text('Without it there is no default route over this interface.'),
    nameserver: Type.Optional(Type.Array(Type.String())),
  },
  { title: 'NetworkInterface' },
)
/** An interface as user data has it. */
export type InterfaceOfUserData = Static<typeof InterfaceOfUserData>
