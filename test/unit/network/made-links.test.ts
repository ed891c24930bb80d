import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { planIfupdown } from '../../../src/network/backends/ifupdown.ts'
import { parseInterfaces } from '../../../src/network/backends/interfaces-file.ts'
import { parseKeyfile } from '../../../src/network/backends/keyfile.ts'
import { changedFiles } from '../../../src/network/backends/netplan.ts'
import { planNetworkManager } from '../../../src/network/backends/networkmanager.ts'
import {
  memberProfile,
  releasedProfile,
  uuidFor,
} from '../../../src/network/backends/networkmanager-files.ts'
import type { Planned } from '../../../src/network/backends/planned.ts'
import type { ChangeSet, StateFile } from '../../../src/network/change-set.ts'
import type { TextFile } from '../../../src/network/links/configuration.ts'
import type { Link, NetworkReading } from '../../../src/network/links/links.ts'
import type { WantedChange } from '../../../src/network/wanted.ts'
import { captured } from '../../support/network-host.ts'

const changeOf = (planned: Planned): ChangeSet => {
  if (planned.kind !== 'change') throw new Error(JSON.stringify(planned))
  return planned.change
}
const addressing = { type: 'static', address: '192.0.2.20/24', gateway: '192.0.2.1' } as const
const bridge: WantedChange = { kind: 'bridge', name: 'br7', members: ['eth0'], addressing, isStpOn: false }
const bond: WantedChange = { kind: 'bond', name: 'bond7', members: ['eth0'], addressing, options: {} }
const vlan: WantedChange = {
  ...{ kind: 'vlan', name: 'eth0.100', parent: 'eth0', parentType: 'nic', id: 100 },
  addressing: { type: 'static', address: '198.51.100.20/24' },
}
const removal: WantedChange = { kind: 'delete', of: 'bridge', name: 'br7' }
const textsOf = (files: readonly StateFile[]): readonly TextFile[] =>
  files.flatMap(({ path, content }) => (typeof content === 'object' ? [{ path, text: content.text }] : []))
const contentOf = (files: readonly StateFile[], path: string) =>
  files.find((file) => file.path === path)?.content

/** The reading after the change: eth0 is a member of br7, which has its address. */
function withBridge(reading: NetworkReading, states: NetworkReading['states'], path: string): NetworkReading {
  const eth0 = reading.links.find(({ name }) => name === 'eth0')!
  const br7: Link = {
    ...eth0,
    ...{ name: 'br7', kind: 'bridge', members: ['eth0'], index: 77 },
    owner: { ...eth0.owner, profile: { uuid: uuidFor('br7'), path } },
  }
  return {
    ...reading,
    states,
    links: [...reading.links.map((link) => (link === eth0 ? { ...link, master: 'br7' } : link)), br7],
  }
}

describe('a link that edgehostd makes on ifupdown', () => {
  it('has the stanzas of the member whose address it takes over, and those stay as comments until it is deleted', async () => {
    const reading = await captured('ifupdown')
    const made = changeOf(planIfupdown(reading, bridge))
    const main = '/etc/network/interfaces'
    const kept = textsOf(made.kept).find(({ path }) => path === main)!.text
    expect(kept).toContain('#edgehostd br7: auto eth0\n#edgehostd br7: iface eth0 inet static\n')
    expect(kept).toMatch(/\n# Made by edgehostd: br7\nauto br7\niface br7 inet static\n/)
    for (const line of ['bridge-ports eth0', 'bridge-stp off', 'bridge-fd 0', 'address 192.0.2.20/24'])
      expect(kept.slice(kept.indexOf('# Made by'))).toContain(`    ${line}\n`.trim())
    expect(kept.slice(kept.indexOf('# Made by'))).toContain(
      'iface br7 inet6 static\n\taddress 2001:db8:1::20/64',
    )
    expect(made).toMatchObject({
      before: { up: ['eth0'], devices: [] },
      after: {
        ...{ up: ['br7'], devices: ['br7'] },
        expected: [{ link: 'br7', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
    })

    const files = reading.states.ifupdown!.files.map((file) =>
      file.path === main ? { ...file, text: kept } : file,
    )
    const ifupdown = { ...reading.states.ifupdown!, files, interfaces: parseInterfaces(files) }
    const gone = changeOf(planIfupdown(withBridge(reading, { ...reading.states, ifupdown }, main), removal))
    expect(textsOf(gone.kept)).toEqual(reading.states.ifupdown!.files.filter(({ path }) => path === main))
    expect(gone).toMatchObject({
      before: { up: ['br7'], devices: ['br7'] },
      after: { up: ['eth0'], devices: [], expected: [{ link: 'eth0', gateway: '192.0.2.1' }] },
    })
  })

  it('can be a bond with the mode for which no switch has to be set up, and a VLAN that leaves its parent alone', async () => {
    const reading = await captured('ifupdown')
    const [text] = textsOf(changeOf(planIfupdown(reading, bond)).kept)
    for (const line of ['bond-slaves eth0', 'bond-mode active-backup', 'bond-miimon 100'])
      expect(text?.text).toContain(`    ${line}\n`)
    const change = changeOf(planIfupdown(reading, vlan))
    expect(change).toMatchObject({ links: ['eth0.100'], after: { up: ['eth0.100'], devices: ['eth0.100'] } })
    expect(textsOf(change.kept)[0]?.text).toContain('vlan-raw-device eth0\n')
  })
})

describe('a link that edgehostd makes on NetworkManager', () => {
  const [run, etc] = ['/run/NetworkManager/system-connections', '/etc/NetworkManager/system-connections']

  it('has the groups of the member whose address it takes over, and those stay as comments until it is deleted', async () => {
    const reading = await captured('networkmanager')
    const made = changeOf(planNetworkManager(reading, bridge))
    const [own, member] = ['edgehostd-br7.nmconnection', 'plant.nmconnection']
    const text = (contentOf(made.kept, `${etc}/${own}`) as { text: string }).text
    expect(Object.fromEntries(parseKeyfile(text).get('ipv4') ?? [])).toMatchObject({
      ...{ method: 'manual', address1: '192.0.2.20/24,192.0.2.1', route1: '198.51.100.0/24,192.0.2.2' },
    })
    expect(text).toMatch(/\[bridge\]\nstp=false\n/)
    expect(contentOf(made.after.files, `${run}/${uuidFor('br7')}.nmmeta`)).toBe('absent')
    expect(made).toMatchObject({
      before: { devices: [], up: ['5c1a9a54-0b6e-4d3e-9f55-3a3d7b0d4a01'] },
      after: {
        ...{ devices: ['br7'], up: ['5c1a9a54-0b6e-4d3e-9f55-3a3d7b0d4a01'] },
        expected: [{ link: 'br7', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
    })

    const texts = new Map([
      ...reading.states.networkManager!.texts,
      ...textsOf(made.kept).map((file) => [file.path, file.text] as const),
    ])
    const networkManager = { ...reading.states.networkManager!, texts }
    const after = withBridge(reading, { ...reading.states, networkManager }, `${etc}/${own}`)
    const gone = changeOf(planNetworkManager(after, removal))
    expect(contentOf(gone.kept, `${etc}/${own}`)).toBe('absent')
    expect(contentOf(gone.after.files, `${run}/${uuidFor('br7')}.nmmeta`)).toBe('masked')
    expect(contentOf(gone.kept, `${etc}/${member}`)).toEqual({
      text: reading.states.networkManager!.texts.get(`${etc}/${member}`),
    })
    expect(gone.after).toMatchObject({ up: ['5c1a9a54-0b6e-4d3e-9f55-3a3d7b0d4a01'], devices: [] })
  })

  it('a profile that was always of a member is released without an address', () => {
    const always = '[connection]\nid=x\nmaster=br0\nslave-type=bridge\n'
    expect(releasedProfile(always)).toBe(
      '[connection]\nid=x\n\n[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=disabled\n',
    )
    const text = '[connection]\nid=x\n\n[ipv4]\n# plant\nmethod=auto\n'
    expect(releasedProfile(memberProfile(text, 'bond', 'bond0'))).toBe(text)
  })

  it('can be a bond and a VLAN', async () => {
    const reading = await captured('networkmanager')
    const texts = (wanted: WantedChange) =>
      textsOf(changeOf(planNetworkManager(reading, wanted)).kept).map(({ text }) => text)
    expect(texts(bond)[0]).toMatch(/\[bond\]\nmode=active-backup\nmiimon=100\n/)
    expect(texts(vlan)).toEqual([expect.stringMatching(/\[vlan\]\nid=100\nparent=eth0\n/)])
  })
})

describe('a link that edgehostd makes on netplan', () => {
  const path = '/etc/netplan/50-plant.yaml'
  const text =
    '# the plant\nnetwork:\n  version: 2\n  ethernets:\n    eth0:\n      addresses: [ 192.0.2.20/24, 2001:db8:1::20/64 ]\n      routes:\n        - { to: default, via: 192.0.2.1 }\n      mtu: 1400\n'
  const files: readonly TextFile[] = [{ path, text }]
  const edit = (reading: NetworkReading, wanted: WantedChange, of = files) => {
    const edited = changedFiles(reading, wanted, of)
    if ('problems' in edited) throw new Error(JSON.stringify(edited))
    return new Map(edited.files.map((file) => [file.path, file.text]))
  }

  const nameFile = (link: Link, id: string): Link => ({
    ...link,
    owner: {
      ...link.owner,
      configured: { ...link.owner.configured!, files: [`/run/systemd/network/10-netplan-${id}.network`] },
    },
  })

  it.each(['', '      mtu: 1400\n', '      # the first\n      mtu: 1400\n'])(
    'keeps the settings of its member as a comment, whatever else stays there: %j',
    async (rest) => {
      const reading = await captured('netplan')
      const given = `network:\n  version: 2\n  ethernets:\n    eth0:\n${rest}      addresses: [ 192.0.2.20/24 ]\n`
      const [member, own] = [...edit(reading, bridge, [{ path, text: given }])].map(
        ([file, made]): TextFile => ({ path: file, text: made! }),
      )
      const after = withBridge(reading, reading.states, own!.path)
      const links = after.links.map((link) => (link.name === 'br7' ? nameFile(link, 'br7') : link))
      const gone = edit({ ...after, links }, removal, [member!, own!])
      expect(parse(gone.get(path)!)).toEqual(parse(given))
    },
  )

  it('has a file of its own with the settings of the member, which keeps them as a comment until it is deleted', async () => {
    const reading = await captured('netplan')
    const made = edit(reading, bridge)
    const own = '/etc/netplan/90-edgehostd-br7.yaml'
    expect(parse(made.get(own)!)).toEqual({
      network: {
        version: 2,
        bridges: {
          br7: {
            macaddress: expect.stringMatching(/^..:/) as string,
            addresses: ['192.0.2.20/24', '2001:db8:1::20/64'],
            routes: [{ to: 'default', via: '192.0.2.1' }],
            interfaces: ['eth0'],
            parameters: { stp: false },
          },
        },
      },
    })
    const member = made.get(path)!
    expect(parse(member)).toEqual({
      network: { version: 2, ethernets: { eth0: { dhcp4: false, mtu: 1400 } } },
    })
    expect(member).toContain('# the plant')

    const after = withBridge(reading, reading.states, own)
    const links = after.links.map((link) => (link.name === 'br7' ? nameFile(link, 'br7') : link))
    const gone = edit({ ...after, links }, removal, [
      { path, text: member },
      { path: own, text: made.get(own)! },
    ])
    expect(gone.get(own)).toBeUndefined()
    expect(gone.has(own)).toBe(true)
    expect(parse(gone.get(path)!)).toEqual(parse(text))
    expect(gone.get(path)).not.toContain('edgehostd')
  })

  it('can be a bond, and a VLAN that names its parent where no file has it', async () => {
    const reading = await captured('netplan')
    const of = (wanted: WantedChange, all: readonly TextFile[]) =>
      [...edit(reading, wanted, all)].flatMap(([file, made]) =>
        file === path ? [] : [parse(made!) as unknown],
      )
    expect(of(bond, files)).toMatchObject([
      {
        network: { bonds: { bond7: { parameters: { mode: 'active-backup', 'mii-monitor-interval': 100 } } } },
      },
    ])
    expect(of(vlan, [])).toEqual([
      {
        network: {
          version: 2,
          ethernets: { eth0: { dhcp4: false } },
          vlans: { 'eth0.100': { id: 100, link: 'eth0', addresses: ['198.51.100.20/24'] } },
        },
      },
    ])
  })
})
