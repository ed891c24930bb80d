import { describe, expect, it } from 'vitest'
import { changedFiles, planNetplan } from '../../../src/network/backends/netplan.ts'
import type { TextFile } from '../../../src/network/links/configuration.ts'
import type { Addressing, WantedChange } from '../../../src/network/wanted.ts'
import { captured } from '../../support/network-host.ts'

const path = '/etc/netplan/50-plant.yaml'
const static9: Addressing = { type: 'static', address: '192.0.2.9/24', gateway: '192.0.2.1' }
const nic = (addressing: Addressing, name = 'eth0'): WantedChange => ({ kind: 'nic', name, addressing })
const yaml = (eth0: string, more = '') => `network:\n  version: 2\n  ethernets:\n    eth0:\n${eth0}${more}`

async function changed(text: string, addressing: Addressing): Promise<string> {
  const edited = changedFiles(await captured('netplan'), nic(addressing), [{ path, text }])
  if ('problems' in edited) throw new Error(JSON.stringify(edited))
  return edited.files[0]?.text ?? 'nothing'
}

describe('the file of a link of netplan', () => {
  it.each<[string, string, Addressing, string]>([
    [
      'has another address and gateway; comments, IPv6, routes and options stay',
      '      # plant\n      addresses:\n        - 192.0.2.5/24:\n            label: plant\n        - 2001:db8::5/64\n      routes:\n        - to: default\n          via: 192.0.2.254\n          metric: 50\n        - to: 198.51.100.0/24\n          via: 192.0.2.2\n',
      static9,
      '      # plant\n      addresses:\n        - 192.0.2.9/24:\n            label: plant\n        - 2001:db8::5/64\n      routes:\n        - to: default\n          via: 192.0.2.1\n          metric: 50\n        - to: 198.51.100.0/24\n          via: 192.0.2.2\n',
    ],
    [
      'to DHCP has no address and no default route of IPv4 left, and keeps its overrides',
      '      addresses: [192.0.2.5/24]\n      gateway4: 192.0.2.1\n      dhcp4-overrides:\n        route-metric: 300\n',
      { type: 'dhcp' },
      '      dhcp4-overrides:\n        route-metric: 300\n      dhcp4: true\n',
    ],
    [
      'from DHCP gets address, route, MTU and name servers, and keeps the search domains',
      '      dhcp4: true\n      nameservers:\n        search: [plant.example]\n',
      { ...static9, mtu: 1400, nameservers: ['192.0.2.1', '2001:db8::1'] },
      '      dhcp4: false\n      nameservers:\n        search: [ plant.example ]\n        addresses: [ 192.0.2.1, 2001:db8::1 ]\n      addresses: [ 192.0.2.9/24 ]\n      routes:\n        - { to: default, via: 192.0.2.1 }\n      mtu: 1400\n',
    ],
  ])('%s', async (_what, before, addressing, after) => {
    expect(await changed(yaml(before), addressing)).toBe(yaml(after))
  })

  it('is refused where two files have the link, or none', async () => {
    const reading = await captured('netplan')
    const one: TextFile = { path, text: yaml('      dhcp4: true\n') }
    const two = { ...one, path: '/etc/netplan/90-more.yaml' }
    expect(changedFiles(reading, nic(static9), [one, two])).toMatchObject({
      problems: [
        { reason: expect.stringContaining('/etc/netplan/90-more.yaml; put it into one of them') as string },
      ],
    })
    expect(changedFiles(reading, nic(static9, 'eth1'), [one])).toMatchObject({
      problems: [{ reason: expect.stringContaining('eth1 has no network.ethernets.eth1') as string }],
    })
  })

  it('is that of its name in the YAML, which a match may tell from that of the link', async () => {
    const reading = await captured('netplan')
    const links = reading.links.map((link) =>
      link.name === 'eth0'
        ? {
            ...link,
            owner: {
              ...link.owner,
              configured: {
                ...link.owner.configured!,
                files: ['/run/systemd/network/10-netplan-plant.network'],
              },
            },
          }
        : link,
    )
    const text = yaml('      dhcp4: true\n').replace('eth0', 'plant')
    expect(
      changedFiles({ ...reading, links }, nic({ type: 'dhcp', mtu: 1300 }), [{ path, text }]),
    ).toMatchObject({ files: [{ path }] })
  })
})

describe('a change of a link of netplan', () => {
  const folder = '/run/systemd/network'
  const eth0 = `${folder}/10-netplan-eth0.network`
  const before = new Map([
    [eth0, '[Match]\nName=eth0\n[Network]\nAddress=192.0.2.20/24\n'],
    [`${folder}/10-netplan-eth1.network`, '[Match]\nName=eth1\n[Network]\nDHCP=ipv4\n'],
  ])
  const text =
    '[Match]\nName=eth0\n[Network]\nAddress=192.0.2.9/24\nAddress=2001:db8:1::20/64\nGateway=192.0.2.1\n'
  const plan = async (more: object = {}) =>
    planNetplan(await captured('netplan'), nic(static9), {
      ...{
        files: [{ path, text: 'before' }],
        changed: [{ path, text: 'changed' }],
        hasCloudInit: false,
        before,
      },
      after: new Map([...before, [eth0, text]]),
      ...more,
    })

  it('has in /run the YAML and only the generated files that differ, and is kept in /etc', async () => {
    expect(await plan()).toMatchObject({
      kind: 'change',
      change: {
        backend: 'netplan',
        links: ['eth0'],
        before: {
          files: [
            { path: '/run/netplan/50-plant.yaml', content: 'absent' },
            { path: eth0, content: { text: before.get(eth0) } },
          ],
        },
        after: {
          files: [
            { path: '/run/netplan/50-plant.yaml', mode: 0o600, content: { text: 'changed' } },
            { path: eth0, content: { text } },
          ],
          expected: [
            { link: 'eth0', addresses: ['192.0.2.9/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' },
          ],
        },
        kept: [{ path, mode: 0o600, content: { text: 'changed' } }],
      },
    })
  })

  it('of which netplan makes the same files is none', async () => {
    expect(await plan({ after: before })).toEqual({ kind: 'unchanged' })
  })

  it('of the file of cloud-init tells that to leave the network alone', async () => {
    const changed = { path: '/etc/netplan/50-cloud-init.yaml', text: 'changed' }
    const kept = async (hasCloudInit: boolean) => {
      const planned = await plan({ changed: [changed], hasCloudInit })
      return planned.kind === 'change' ? planned.change.kept.map((file) => file.path) : []
    }
    expect(await kept(true)).toEqual([changed.path, '/etc/cloud/cloud.cfg.d/99-disable-network-config.cfg'])
    expect(await kept(false)).toEqual([changed.path])
  })

  it('of a change that is still in /run begins there', async () => {
    const trial = { path: '/run/netplan/50-plant.yaml', text: 'of the trial' }
    expect(await plan({ files: [trial], changed: [{ ...trial, text: 'changed' }] })).toMatchObject({
      change: {
        before: { files: [{ path: trial.path, content: { text: 'of the trial' } }, {}] },
        kept: [{ path }],
      },
    })
  })
})
