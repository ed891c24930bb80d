import { describe, expect, it } from 'vitest'
import type { HostFiles } from '../../src/host/files.ts'
import { parseResolvConf, readDns } from '../../src/host/network/dns.ts'
import { createLinkDns } from '../../src/host/network/link-dns.ts'
import { isServiceRunning } from '../../src/host/services.ts'
import { programs } from '../fixtures/host/edges.ts'
import { machine } from '../fixtures/host/tree.ts'

const group = (hierarchy: string, unit = 'systemd-resolved.service') => `${hierarchy}/system.slice/${unit}`
const populated = (count: 0 | 1, hierarchy = '/sys/fs/cgroup') =>
  `${group(hierarchy)}/cgroup.events <<\npopulated ${count}\nfrozen 0\n>>\n`

describe('a service runs', () => {
  const runs = (changes: string) => isServiceRunning(machine('', changes), 'systemd-resolved.service')

  it.each(['/sys/fs/cgroup', '/sys/fs/cgroup/unified'])(
    'where %s counts a process of it',
    async (hierarchy) => {
      expect(await runs(populated(1, hierarchy))).toBe(true)
      expect(await runs(populated(0, hierarchy))).toBe(false)
    },
  )

  it('where the old hierarchy lists a process of it', async () => {
    expect(await runs(`${group('/sys/fs/cgroup/systemd')}/cgroup.procs = 417\n`)).toBe(true)
    expect(await runs(`${group('/sys/fs/cgroup/systemd')}/cgroup.procs = \n`)).toBe(false)
  })

  it('not where no control group of it is left', async () => {
    expect(await runs(`${group('/sys/fs/cgroup', 'ssh.service')}/cgroup.events = populated 1\n`)).toBe(false)
  })
})

// Captured from systemd-resolved 252 with DNS=192.0.2.53 2001:db8::53#dns.example 192.0.2.55:5353 and
// Domains=shop.example, and a link with DNS=192.0.2.153 192.0.2.154:5353 and DOMAINS=lan.example.
const resolved = `/run/systemd/resolve/resolv.conf <<
# This is /run/systemd/resolve/resolv.conf managed by man:systemd-resolved(8).
# Do not edit.

nameserver 192.0.2.53
nameserver 2001:db8::53
nameserver 192.0.2.153
search shop.example lan.example
>>
`
const stub =
  '/etc/resolv.conf <<\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch shop.example lan.example\n>>\n'
const byHand = '/etc/resolv.conf <<\nnameserver 198.51.100.53\noptions rotate\nsearch hand.example\n>>\n'

describe('name servers', () => {
  it('are those that a running resolved asks, with the options of programs', async () => {
    const known = {
      nameservers: ['192.0.2.53', '2001:db8::53', '192.0.2.153'],
      searchDomains: ['shop.example', 'lan.example'],
    }
    expect(await readDns(machine('', populated(1) + resolved + stub))).toEqual({
      ...known,
      options: ['edns0', 'trust-ad'],
    })
    expect(await readDns(machine('', populated(1) + resolved + byHand))).toEqual({
      ...known,
      options: ['rotate'],
    })
  })

  it.each([
    ['has stopped', populated(0)],
    ['was never there', ''],
  ])('are those of resolv.conf, not those that resolved left behind, when it %s', async (_, state) => {
    expect(await readDns(machine('', state + resolved + byHand))).toEqual({
      nameservers: ['198.51.100.53'],
      options: ['rotate'],
      searchDomains: ['hand.example'],
    })
  })

  it('are those behind the stub where nothing shows that resolved runs', async () => {
    expect((await readDns(machine('', resolved + stub))).nameservers).toEqual([
      '192.0.2.53',
      '2001:db8::53',
      '192.0.2.153',
    ])
  })

  it('are the stub itself where nothing says what is behind', async () => {
    expect((await readDns(machine('', stub))).nameservers).toEqual(['127.0.0.53'])
  })

  it('are none where a running resolved knows none', async () => {
    const empty = '/run/systemd/resolve/resolv.conf <<\n# No DNS servers known.\nsearch .\n>>\n'
    expect(await readDns(machine('', populated(1) + empty + stub))).toEqual({
      nameservers: [],
      options: ['edns0', 'trust-ad'],
      searchDomains: [],
    })
  })

  it('follow resolv.conf(5): comments, the last search list, options that add up', () => {
    const text = `# by hand
domain old.example
nameserver 192.0.2.53 # first
nameserver\t2001:db8::53
; nameserver 192.0.2.99
search a.example b.example
options ndots:5 timeout:1
options rotate
`
    expect(parseResolvConf(text)).toEqual({
      nameservers: ['192.0.2.53', '2001:db8::53'],
      options: ['ndots:5', 'timeout:1', 'rotate'],
      searchDomains: ['a.example', 'b.example'],
    })
  })

  it('are none on a machine without a resolv.conf', async () => {
    expect(await readDns(machine(''))).toEqual({ nameservers: [], options: [], searchDomains: [] })
  })
})

describe('name servers of a link', () => {
  const networkd =
    '/run/systemd/netif/links/2 = DNS=192.0.2.153 192.0.2.154:5353 fe80::53%eth0#dns.example [2001:db8::53]:5353\n'
  const byNetworkd = new Map([[2, ['192.0.2.153', '192.0.2.154', 'fe80::53', '2001:db8::53']]])
  // Captured from resolvectl 252.
  const shown = `Global: 192.0.2.53
Link 2 (eth0): 203.0.113.53 203.0.113.55:5353
Link 3 (wlan0): 2001:db8::54%3#dns.example
Link 4 (docker0):
`
  function reader(files: HostFiles, outputs: Parameters<typeof programs>[0] = {}) {
    const { runner, ran } = programs(outputs)
    const state = { now: 0 }
    return { read: createLinkDns({ files, runner, monotonic: () => state.now }), ran, state }
  }

  it('are those of networkd, as addresses, where resolved does not run', async () => {
    const { read, ran } = reader(machine('', networkd + populated(0)), { resolvectl: shown })
    expect(await read()).toEqual({ servers: byNetworkd, problems: [] })
    expect(ran).toEqual([])
  })

  it('are those that a running resolved tells', async () => {
    const { read } = reader(machine('', networkd + resolved + populated(1)), { resolvectl: shown })
    expect(await read()).toEqual({
      servers: new Map([
        [2, ['203.0.113.53', '203.0.113.55']],
        [3, ['2001:db8::54']],
      ]),
      problems: [],
    })
  })

  it('are asked for again when the list of all servers has changed, and after five minutes', async () => {
    const files = machine('', resolved + populated(1))
    let list = 'nameserver 192.0.2.53'
    const text = async (path: string) =>
      path === '/run/systemd/resolve/resolv.conf' ? list : files.text(path)
    const { read, ran, state } = reader({ ...files, text }, { resolvectl: shown })
    await read()
    await read()
    expect(ran).toEqual(['resolvectl dns'])
    list += '\nnameserver 192.0.2.54'
    await read()
    expect(ran).toHaveLength(2)
    state.now = 300_000
    await read()
    expect(ran).toHaveLength(3)
  })

  it('are those of networkd where the tool fails, which is a problem', async () => {
    const { read } = reader(machine('', networkd + resolved + populated(1)))
    expect(await read()).toEqual({ servers: byNetworkd, problems: ['resolvectl: not-started (ENOENT)'] })
  })
})
