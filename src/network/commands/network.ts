import { defineCommand, type Noun } from '../../ctl/command.ts'
import { offer, onHost } from '../../ctl/on-host.ts'
import type { Options } from '../../ctl/options.ts'
import type { ManagementInterface } from '../schemas.ts'

const addressing = {
  type: {
    value: 'TYPE',
    choices: ['dhcp', 'static', 'none'],
    summary: 'How it gets its IPv4 address. Default with --address: static.',
  },
  address: {
    value: 'ADDRESS/LENGTH',
    summary: 'Its IPv4 address and the length of its network, for example 192.0.2.9/24.',
    isOfCommand: true,
  },
  gateway: {
    value: 'ADDRESS',
    summary: 'The gateway of the default route. Without it: no default route over this link.',
  },
  mtu: { value: 'BYTES', summary: 'The MTU, 68 to 9216. Without it: as it is.' },
  nameserver: {
    value: 'ADDRESS...',
    summary: 'Its name servers; none removes them. Without it: as they are.',
    isList: true,
  },
} as const satisfies Options

const trial = {
  'dry-run': {
    summary: 'Only show all problems, the routes that would go, and the addresses of the host then.',
    isOfCommand: true,
  },
  window: {
    value: 'SECONDS',
    summary:
      'Time until it is taken back unless it is confirmed, 30 to 600. Default: 60, and 120 where an address comes by DHCP.',
  },
  'drop-address': { summary: 'Addresses of members go that the change does not take over.' },
  confirm: {
    value: 'platform',
    choices: ['platform'],
    summary:
      'Who confirms it in place of this command: the next heartbeat of the host to its platform, on a new connection.',
  },
  'no-confirm': { summary: 'Only apply it: end when it is applied, and say how to confirm it.' },
} as const satisfies Options

const member = { value: 'NAME...', summary: 'Its members.', isList: true } as const

const details =
  'The change is tried: the host takes it back by itself at its deadline, whatever happens meanwhile, unless it is confirmed. This command waits until it is applied and confirms it: over the network on a new connection to the new address, where the host has to show the key that is known for it; on the host, as root, at once. In a shell over the network use --no-confirm there, and confirm from a new one. It ends with 0 when the change is confirmed, 7 when it was taken back, 3 when the host does not answer.'

export const network: Noun = [
  defineCommand({
    name: 'network list',
    summary: 'List the links of this host: interfaces, bonds, VLANs, bridges, with address, state and owner',
    details:
      'CHANGE says whether a link can be configured here; `network show NAME` says why not. Interfaces of pods, containers and virtual machines are left out.',
    load: onHost(async () => (await import('./show.ts')).listLinks),
  }),
  defineCommand({
    name: 'network show',
    arguments: ['NAME'],
    summary: 'Show a link: what runs, what is configured, in which files, and by whom',
    load: onHost(async () => (await import('./show.ts')).showLink),
  }),
  defineCommand({
    name: 'network set',
    arguments: ['NAME'],
    summary: 'Configure a NIC or Wi-Fi interface, with a way back; for administrators',
    details,
    options: { ...addressing, ...trial },
    load: onHost(async () => (await import('./change.ts')).setLink),
  }),
  defineCommand({
    name: 'network bond',
    arguments: ['NAME'],
    summary: 'Make or replace a bond, with a way back; for administrators',
    details,
    options: {
      ...addressing,
      member,
      mode: { value: 'MODE', summary: 'For example active-backup, which is that of a new bond, or 802.3ad.' },
      'mii-monitor': {
        value: 'SECONDS',
        summary: 'Time between two looks at the carriers of its members. Default of a new bond: 0.1.',
      },
      'lacp-rate': {
        value: 'RATE',
        choices: ['slow', 'fast'],
        summary: 'How often the other end sends LACP packets; with the mode 802.3ad.',
      },
      'hash-policy': {
        value: 'POLICY',
        summary: 'How a member is chosen, for example layer3+4; with balance-xor, 802.3ad and balance-tlb.',
      },
      ...trial,
    },
    load: onHost(async () => (await import('./change.ts')).putBond),
  }),
  defineCommand({
    name: 'network vlan',
    arguments: ['NAME'],
    summary: 'Make or replace a VLAN, with a way back; for administrators',
    details: `NAME is PARENT.ID, for example eth0.20. ${details}`,
    options: {
      ...addressing,
      parent: { value: 'NAME', summary: 'The NIC or bond that it is on. Default: as NAME says.' },
      id: { value: 'ID', summary: 'Its number, 1 to 4094. Default: as NAME says.' },
      ...trial,
    },
    load: onHost(async () => (await import('./change.ts')).putVlan),
  }),
  defineCommand({
    name: 'network bridge',
    arguments: ['NAME'],
    summary: 'Make or replace a bridge, with a way back; for administrators',
    details,
    options: {
      ...addressing,
      member,
      stp: {
        value: 'on|off',
        choices: ['on', 'off'],
        summary: 'Whether it uses the spanning tree protocol. Without it: nothing is written of it.',
      },
      ...trial,
    },
    load: onHost(async () => (await import('./change.ts')).putBridge),
  }),
  defineCommand({
    name: 'network management',
    arguments: ['[NAME]'],
    completes: offer(() =>
      Promise.resolve(async ({ client }) => {
        const found = await client.get<ManagementInterface>('/v1/edge-mgmt/network/management-interface', [
          'candidates',
        ])
        return found.candidates.map(({ name }) => name)
      }),
    ),
    summary: 'Show or choose the link by which the service API, peers and content speak',
    details:
      'It changes no route. The choice goes along with its address when a change moves that to another link. Administrators choose.',
    options: { default: { summary: 'Take the choice back: the link of the default route.' } },
    load: onHost(async () => (await import('./management.ts')).management),
  }),
  defineCommand({
    name: 'network delete',
    arguments: ['NAME'],
    summary: 'Delete a bond, a VLAN or a bridge, with a way back; for administrators',
    details,
    options: trial,
    load: onHost(async () => (await import('./change.ts')).deleteLink),
  }),
]
