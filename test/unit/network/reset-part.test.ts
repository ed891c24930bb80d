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
    names: async (folder) =>
      folder.startsWith('/run/')
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
    editedElsewhere([
      change({ backend: 'netplan', links: ['eth1', 'eth0'] }),
      change({ backend: 'netplan', links: ['eth0'] }),
      change({ backend: 'networkd', links: ['eth2'] }),
      change({ backend: 'networkmanager', links: ['eth3'], state: 'reverted' }),
    ]),
  ).toEqual(['eth0 as it stands in the files of netplan', 'eth1 as it stands in the files of netplan'])
})
