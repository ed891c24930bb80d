import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { installPackage } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { addressed, bootTrialHost, type TrialHost } from './host/network-course.ts'
import './host/global-setup.ts'

const kept = '/usr/local/lib/systemd/network'

// What a technician does wrong, and what goes wrong meanwhile; its backend is networkd.
describe('on a booted host', () => {
  let host: TrialHost
  let before = ''
  const network = async (...args: string[]) => host.run(['edgehostctl', 'network', ...args])
  const put = (last: number, window = 10) =>
    host.ask('PUT', `interfaces/host0/config?window=${window}`, addressed(last))
  const stateOf = async (uid: string) => (await host.ask('GET', `changes/${uid}`)).json
  const isState = (uid: string, state: string, timeoutMs = 60_000) =>
    eventually(async () => expect(await stateOf(uid)).toMatchObject({ state }), timeoutMs)
  const isAsBefore = () => eventually(async () => expect(await host.snapshot()).toBe(before), 30_000)
  async function tried(last = 11, window = 10) {
    const begun = await put(last, window)
    expect(begun.status, begun.text).toBe(202)
    await isState(begun.json.uid, 'trial')
    return begun.json.uid
  }

  beforeAll(async () => {
    host = await bootTrialHost('networkd')
    await host.addForeign()
    await host.neighbour('ip', 'address', 'add', '192.0.2.77/24', 'dev', 'edge0')
    // Its addresses of IPv6 are looked for by others for a second.
    before = await eventually(async () => {
      const seen = await host.snapshot()
      expect(seen).not.toContain('tentative')
      return seen
    })
  })
  afterAll(() => host.unplug())

  const address = (text: string, ...more: string[]) => ['set', 'host0', '--address', text, ...more]
  it.each<[string, string[], number, RegExp]>([
    ['a mask that is none', address('192.0.2.11/33'), 2, /--address is 192\.0\.2\.11\/33/],
    ['no mask', address('192.0.2.11'), 2, /must be an IPv4 address with the length/],
    ['an address that is none', address('192.0.2.256/24'), 2, /--address is 192\.0\.2\.256\/24/],
    [
      'all addresses as its network',
      address('192.0.2.11/0', '--gateway', '192.0.2.1'),
      1,
      /subnet .*is not a mask/,
    ],
    [
      'a mask without its gateway',
      address('192.0.2.11/32', '--gateway', '192.0.2.1'),
      1,
      /gateway .* is not in/,
    ],
    ['a gateway outside', address('192.0.2.11/24', '--gateway', '192.0.3.1'), 1, /gateway .* is not in/],
    ['itself as the gateway', address('192.0.2.11/24', '--gateway', '192.0.2.11'), 1, /the host itself/],
    ['no gateway', address('192.0.2.11/24'), 1, /without a default route/],
    [
      'the broadcast address',
      address('192.0.2.255/24', '--gateway', '192.0.2.1'),
      1,
      /no address for a host/,
    ],
    ['loopback', address('127.0.0.2/8', '--gateway', '127.0.0.1'), 1, /no address for a host/],
    [
      'an address of another host',
      address('192.0.2.77/24', '--gateway', '192.0.2.1'),
      1,
      /192\.0\.2\.77 is taken: the device/,
    ],
    ['the network of another link', address('203.0.113.9/24'), 1, /is the network of eth2 too/],
    [
      'an MTU below IPv4',
      address('192.0.2.11/24', '--gateway', '192.0.2.1', '--mtu', '40'),
      1,
      /mtu .*68 to/,
    ],
    ['a huge MTU', address('192.0.2.11/24', '--gateway', '192.0.2.1', '--mtu', '9999999'), 1, /mtu .*9216/],
    ['an MTU that is no number', address('192.0.2.11/24', '--mtu', '15o0'), 2, /--mtu is 15o0/],
    [
      'a name server that is a name',
      [...address('192.0.2.11/24'), '--nameserver', 'dns'],
      1,
      /nameservers\[0\]/,
    ],
    ['a link that is not there', ['set', 'host7', '--type', 'dhcp'], 1, /host7 is no link of this host/],
    ['a name of 16 characters', ['bridge', 'a-name-of-16-cha', '--type', 'none'], 1, /name .*(15|14)/],
    ['a name of containers', ['bridge', 'docker0', '--type', 'none'], 1, /of containers/],
    ['the VLAN 0', ['vlan', 'host0.0', '--type', 'dhcp'], 1, /vlanID .*1 to 4094/],
    ['the VLAN 4095', ['vlan', 'host0.4095', '--type', 'dhcp'], 1, /vlanID .*1 to 4094/],
    ['a VLAN on none', ['vlan', 'host7.20', '--type', 'dhcp'], 1, /host7 is no link/],
    [
      'a bond over the address',
      ['bond', 'bond0', '--member', 'host0', '--type', 'none'],
      1,
      /host0 has the address/,
    ],
    [
      'a bond twice over a NIC',
      ['bond', 'bond0', ...Array<string[]>(2).fill(['--member', 'eth2']).flat(), '--type', 'none'],
      1,
      /a second time/,
    ],
    [
      'a bond over a bond of none',
      ['bond', 'bond0', '--member', 'eth7', '--type', 'none'],
      1,
      /eth7 is no link/,
    ],
    ['the deletion of a NIC', ['delete', 'host0'], 1, /host0 is a NIC/],
    [
      'a window too short',
      [...address('192.0.2.11/24', '--gateway', '192.0.2.1'), '--window', '4'],
      1,
      /window/,
    ],
    [
      'a window too long',
      [...address('192.0.2.11/24', '--gateway', '192.0.2.1'), '--window', '601'],
      1,
      /window/,
    ],
    [
      'a change that is none',
      ['confirm', '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'],
      1,
      /no change of the network/,
    ],
  ])('%s is refused with the reason, and nothing is begun', async (_name, args, exitCode, reason) => {
    const ended = await network(...args)
    expect(ended, `${ended.stdout}${ended.stderr}`).toMatchObject({ exitCode })
    expect(`${ended.stdout}${ended.stderr}`.replaceAll(/\s+/g, ' ')).toMatch(reason)
    expect((await host.ask('GET', 'changes')).json.items).toEqual([])
  })

  it('the address that it has is no change', async () => {
    const same = await network(...address('192.0.2.10/24', '--gateway', '192.0.2.1'))
    expect(same, same.stderr).toMatchObject({ exitCode: 0 })
    expect(same.stdout).toContain('configured so already')
    expect((await host.ask('GET', 'changes')).json.items).toEqual([])
    expect(await host.snapshot()).toBe(before)
  })

  it('of two changes at once one is tried', async () => {
    const replies = await Promise.all([put(11, 5), put(12, 5), put(13, 5)])
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 429, 429])
    const { uid } = replies.find(({ status }) => status === 202)!.json
    await isState(uid, 'reverted')
    await isAsBefore()
  })

  it('a package that is installed again in the trial changes nothing of it', async () => {
    const uid = await tried(11, 60)
    await installPackage(host, await readFile(inject('deb')))
    await isState(uid, 'trial')
    await host.ask('POST', `changes/${uid}/actions/revert`)
    await isState(uid, 'reverted')
    await isAsBefore()
  })

  it('a change for whose file there is no room is not kept, and is kept when there is', async () => {
    const uid = await tried(11, 60)
    await host.sh(
      `mkdir -p ${kept}; mount -t tmpfs -o size=4k tmpfs ${kept}; head -c 4096 /dev/zero > ${kept}/full`,
    )
    const refused = await host.ask('POST', `changes/${uid}/actions/confirm`)
    expect(refused, refused.text).toMatchObject({ status: 503 })
    expect(refused.text).toMatch(/No space left on device.*make room/)
    expect(await stateOf(uid)).toMatchObject({ state: 'trial' })
    await host.sh(`umount ${kept}`)
    expect((await host.ask('POST', `changes/${uid}/actions/confirm`)).json).toMatchObject({
      state: 'confirmed',
    })
    expect(await host.sh(`ls -A ${kept}`)).toBe('05-edgehostd-host0.network\n')
    const back = await tried(10, 60)
    expect((await host.ask('POST', `changes/${back}/actions/confirm`)).status).toBe(200)
    await isAsBefore()
  })

  it('the configuration of the trial is not what the host has already', async () => {
    const uid = await tried(11, 60)
    expect(await put(11)).toMatchObject({ status: 429, json: { details: { uid } } })
    await host.ask('POST', `changes/${uid}/actions/revert`)
    await isState(uid, 'reverted')
    await isAsBefore()
  })

  it('it is taken back at its deadline on a full /run, and by a program that was killed meanwhile', async () => {
    const uid = await tried(11, 10)
    await host.sh('mount -o remount,size="$(df --output=used -k /run | tail -n 1 | tr -d " ")"k /run')
    await eventually(() => host.sh('ls /run/edgehostd-network/trial/reverting'), 30_000)
    await host.sh('systemctl kill --signal=KILL "edgehostd-network-revert-$1.service"', uid)
    await eventually(async () => expect(await host.reaches('192.0.2.10')).toBe(true), 30_000)
    await host.sh('mount -o remount,size=50% /run')
    await isState(uid, 'reverted')
    await isAsBefore()
  })

  it('a cable that is pulled in the trial, and plugged in after it, leaves the network of before', async () => {
    const uid = await tried(11, 5)
    const plug = async (state: 'up' | 'down') => {
      const { stdout } = await host.neighbour('ip', '-o', 'link', 'show', 'master', 'edge0')
      const cable = /: (vb-[^@:]+)/.exec(stdout)![1]!
      expect(await host.neighbour('ip', 'link', 'set', cable, state)).toMatchObject({ exitCode: 0 })
    }
    await plug('down')
    expect(await host.reaches('192.0.2.11')).toBe(false)
    await eventually(async () => expect((await stateOf(uid)).state).toMatch(/^revert(ed|Failed)$/), 90_000)
    await plug('up')
    await eventually(async () => expect(await host.reaches('192.0.2.10')).toBe(true), 30_000)
    await isAsBefore()
  })
})

it('networking that is started again while a change is taken back leaves no link down (ifupdown)', async () => {
  const host = await bootTrialHost('ifupdown')
  try {
    await host.addForeign()
    const before = await host.snapshot()
    // It has no address for so long.
    const slow = '/etc/network/if-pre-up.d/test-slow'
    await host.write(slow, '#!/bin/sh\n[ "$IFACE" != eth2 ] || sleep 5\n', 0o755)
    const begun = await host.ask('PUT', 'interfaces/host0/config?window=60', addressed(11))
    expect(begun.status, begun.text).toBe(202)
    const { uid } = begun.json
    const isState = (state: string) =>
      eventually(
        async () => expect((await host.ask('GET', `changes/${uid}`)).json).toMatchObject({ state }),
        60_000,
      )
    await isState('trial')
    await host.sh('systemctl restart --no-block networking')
    await eventually(() => host.sh('! ip -4 address show dev eth2 | grep inet'))
    expect(await host.ask('POST', `changes/${uid}/actions/revert`)).toMatchObject({ status: 200 })
    await isState('reverted')
    await eventually(async () => expect(await host.snapshot()).toBe(before), 30_000)
  } finally {
    await host.unplug()
  }
})
