import { hash } from 'node:crypto'
import { expect, it } from 'vitest'
import { createNetworkResetPart, editedElsewhere } from '../../../src/network/trial/reset-part.ts'
import type { StoredChange } from '../../../src/network/trial/store.ts'
import { removeNetwork } from '../../../src/network/trial/verbs.ts'
import type { Verbs } from '../../../src/verbs/call.ts'

const change = (more: Partial<StoredChange>) =>
  ({ state: 'confirmed', links: ['eth0'], ...more }) as StoredChange

it('files of ours go, those of others stay, and links that other programs have are named once', async () => {
  const asked: string[] = []
  const world = { open: undefined as StoredChange | undefined }
  const part = createNetworkResetPart({
    verbs: { call: async ({ name }: { name: string }) => void asked.push(name) } as unknown as Verbs,
    trials: { open: () => world.open, list: () => [change({ backend: 'ifupdown' })] },
    stateFolder: '/state/network',
    read: async () => undefined,
    names: async (folder) =>
      folder.startsWith('/state/')
        ? []
        : folder.startsWith('/run/')
          ? ['05-edgehostd-br0.netdev', '10-netplan-eth0.network']
          : [
              '05-edgehostd-eth0.network',
              '05-edgehostd-eth0.network.d',
              '05-edgehostd-.network',
              '50-site.network',
            ],
  })
  expect((await part.describe()).map((line) => line.split(':')[0])).toEqual([
    '/usr/local/lib/systemd/network/05-edgehostd-eth0.network',
    '/run/systemd/network/05-edgehostd-br0.netdev',
  ])
  expect(await part.stays?.()).toEqual(['eth0 as it stands in the files of ifupdown'])
  // An open change ends first.
  world.open = change({ state: 'trial' })
  expect([await part.clear(), asked]).toEqual([false, []])
  world.open = undefined
  expect([await part.clear(), asked]).toEqual([true, [removeNetwork.name]])
})

it('only confirmed changes of links of others are in their files', () => {
  expect(
    editedElsewhere(
      [
        change({ backend: 'netplan', links: ['eth1', 'eth0'] }),
        change({ backend: 'netplan', links: ['eth0'] }),
        change({ backend: 'networkd', links: ['eth2'] }),
        change({ backend: 'networkmanager', links: ['eth3'], state: 'reverted' }),
        change({ backend: 'ifupdown', links: ['eth4'] }),
      ],
      new Set(['eth4']),
    ),
  ).toEqual(['eth0 as it stands in the files of netplan', 'eth1 as it stands in the files of netplan'])
})

it('files of others are put back as they were found, unless somebody else has changed them since', async () => {
  const state = '/state/network/originals'
  const mark = (text: string) => `${hash('sha256', text, 'hex')}\n`
  const files = new Map([
    ['/etc/network/interfaces', 'ours'],
    [`${state}/a/path`, '/etc/network/interfaces\n'],
    [`${state}/a/first`, mark('found')],
    [`${state}/a/mark`, mark('ours')],
    ['/etc/netplan/90-edgehostd-br0.yaml', 'bridge'],
    [`${state}/b/path`, '/etc/netplan/90-edgehostd-br0.yaml\n'],
    [`${state}/b/first`, 'absent\n'],
    [`${state}/b/mark`, mark('bridge')],
    ['/etc/netplan/50-plant.yaml', 'of somebody'],
    [`${state}/c/path`, '/etc/netplan/50-plant.yaml\n'],
    [`${state}/c/first`, mark('found')],
    [`${state}/c/mark`, mark('ours')],
    // Changed back by a change of ours.
    ['/etc/NetworkManager/system-connections/x.nmconnection', 'found'],
    [`${state}/d/path`, '/etc/NetworkManager/system-connections/x.nmconnection\n'],
    [`${state}/d/first`, mark('found')],
    [`${state}/d/mark`, mark('found')],
    // Cut off before it was whole.
    [`${state}/e.new/path`, '/etc/x\n'],
    [`${state}/links-ifupdown`, 'eth0\neth0.5\n'],
  ])
  const part = createNetworkResetPart({
    verbs: {} as Verbs,
    trials: {
      open: () => undefined,
      list: () => [
        change({ backend: 'ifupdown', links: ['eth0'] }),
        change({ backend: 'ifupdown', links: ['eth9'] }),
      ],
    },
    stateFolder: '/state/network',
    read: async (file) => (files.has(file) ? Buffer.from(files.get(file)!) : undefined),
    names: async (folder) =>
      folder === state ? ['a', 'b', 'c', 'd', 'e.new', 'links-ifupdown', 'devices-ifupdown'] : [],
  })
  expect(await part.describe()).toEqual([
    '/etc/netplan/90-edgehostd-br0.yaml: it goes, since edgehostd has made it',
    '/etc/network/interfaces: it is again as edgehostd found it',
  ])
  expect(await part.stays?.()).toEqual([
    '/etc/netplan/50-plant.yaml: others have changed it since edgehostd did',
    'eth9 as it stands in the files of ifupdown',
  ])
})
