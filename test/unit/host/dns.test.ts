import { describe, expect, it } from 'vitest'
import { parseResolvConf, readDns, readLinkDns } from '../../../src/host/network/dns.ts'
import { isServiceRunning } from '../../../src/host/services.ts'
import { CommandFailed } from '../../../src/system/runner.ts'
import { busctlLine, busctlOutput, resolvedOutputs, unknownLink } from '../../fixtures/host/busctl.ts'
import { programs, refusal } from '../../fixtures/host/edges.ts'
import { machine } from '../../fixtures/host/tree.ts'

const group = (hierarchy: string, unit = 'systemd-resolved.service') => `${hierarchy}/system.slice/${unit}`
const populated = (count: 0 | 1, hierarchy = '/sys/fs/cgroup') =>
  `${group(hierarchy)}/cgroup.events <<\npopulated ${count}\nfrozen 0\n>>\n`

describe('a service runs', () => {
  const runs = (changes: string) => isServiceRunning(machine('', changes), 'systemd-resolved.service')

  it.each(['/sys/fs/cgroup', '/sys/fs/cgroup/unified'])(
    'a service runs where %s counts a process of it',
    async (hierarchy) => {
      expect(await runs(populated(1, hierarchy))).toBe(true)
      expect(await runs(populated(0, hierarchy))).toBe(false)
    },
  )

  it('a service runs where the old hierarchy lists a process of it', async () => {
    expect(await runs(`${group('/sys/fs/cgroup/systemd')}/cgroup.procs = 417\n`)).toBe(true)
    expect(await runs(`${group('/sys/fs/cgroup/systemd')}/cgroup.procs = \n`)).toBe(false)
  })

  it('a service without a control group does not run', async () => {
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
  it('name servers are those of a running resolved, with the options of resolv.conf', async () => {
    const known = {
      nameservers: ['192.0.2.53', '2001:db8::53', '192.0.2.153'],
      searchDomains: ['shop.example', 'lan.example'],
    }
    expect((await readDns(machine('', populated(1) + resolved + stub))).dns).toEqual({
      ...known,
      options: ['edns0', 'trust-ad'],
    })
    expect((await readDns(machine('', populated(1) + resolved + byHand))).dns).toEqual({
      ...known,
      options: ['rotate'],
    })
  })

  it.each([
    ['has stopped', populated(0)],
    ['was never there', ''],
  ])(
    'name servers are those of resolv.conf, not of the files that resolved left, when it %s',
    async (_, state) => {
      expect((await readDns(machine('', state + resolved + byHand))).dns).toEqual({
        nameservers: ['198.51.100.53'],
        options: ['rotate'],
        searchDomains: ['hand.example'],
      })
    },
  )

  it('name servers are those behind the stub where resolved does not seem to run', async () => {
    expect((await readDns(machine('', resolved + stub))).dns.nameservers).toEqual([
      '192.0.2.53',
      '2001:db8::53',
      '192.0.2.153',
    ])
  })

  it('the name server is the stub itself where resolved has no files', async () => {
    expect((await readDns(machine('', stub))).dns.nameservers).toEqual(['127.0.0.53'])
  })

  it('there are no name servers where a running resolved has none', async () => {
    const empty = '/run/systemd/resolve/resolv.conf <<\n# No DNS servers known.\nsearch .\n>>\n'
    expect((await readDns(machine('', populated(1) + empty + stub))).dns).toEqual({
      nameservers: [],
      options: ['edns0', 'trust-ad'],
      searchDomains: [],
    })
  })

  it('resolv.conf(5) is parsed with comments, the last search list and the options of all lines', () => {
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
      invalid: [],
    })
  })

  it('a name server that is not an address is left out, with a problem that names it', async () => {
    const text = `/etc/resolv.conf <<
nameserver 10.0.0.300
nameserver dns.example
nameserver fe80::1%eth0
nameserver 127.1
nameserver 10.0.0.1:53
>>`
    expect(await readDns(machine('', text))).toEqual({
      dns: { nameservers: ['fe80::1%eth0', '127.1'], options: [], searchDomains: [] },
      problems: [
        '/etc/resolv.conf: "10.0.0.300" is not an address, so no resolver uses it, and 2 more; correct the nameserver line',
      ],
    })
  })

  it('a carriage return and a number sign without a blank belong to the value, as for the C library', async () => {
    const lines = [
      ...[
        'nameserver 192.0.2.1\r',
        'nameserver 192.0.2.2#53',
        'nameserver 192.0.2.3;x',
        ' nameserver 192.0.2.4',
      ],
      ...[
        'nameserver\t192.0.2.5\t; last',
        '\t# nameserver 192.0.2.6',
        'search a.example\r',
        'options rotate # all',
      ],
    ]
    const { dns, problems } = await readDns(machine('', `/etc/resolv.conf <<\n${lines.join('\n')}\n>>`))
    expect(dns).toEqual({ nameservers: ['192.0.2.5'], options: ['rotate'], searchDomains: [] })
    expect(problems).toEqual([
      '/etc/resolv.conf: "192.0.2.1\\u000d" is not an address, so no resolver uses it, and 2 more; correct the nameserver line',
    ])
  })

  it('name servers are at most three, as for the C library, without counting invalid ones', async () => {
    const lines = ['no', '10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'].map((each) => `nameserver ${each}`)
    const { dns } = await readDns(machine('', `/etc/resolv.conf <<\n${lines.join('\n')}\n>>`))
    expect(dns.nameservers).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  })

  it('there are no name servers on a machine without a resolv.conf', async () => {
    expect((await readDns(machine(''))).dns).toEqual({ nameservers: [], options: [], searchDomains: [] })
  })

  it('a folder in place of resolv.conf is named, and the servers of resolved are shown', async () => {
    const host = `${populated(1)}${resolved}/etc/resolv.conf/\n`
    const { dns, problems } = await readDns(machine('', host))
    expect(dns.nameservers).toEqual((await readDns(machine('', populated(1) + resolved))).dns.nameservers)
    expect(dns.nameservers).not.toEqual([])
    expect(problems).toEqual(['/etc/resolv.conf is a folder, not a regular file'])
  })
})

describe('name servers of a link', () => {
  const networkd =
    '/run/systemd/netif/links/2 = DNS=192.0.2.153 192.0.2.154:5353 fe80::53%eth0#dns.example [2001:db8::53]:5353\n'
  const byNetworkd = new Map([[2, ['192.0.2.153', '192.0.2.154', 'fe80::53', '2001:db8::53']]])
  const manager = '/org/freedesktop/resolve1'
  const runs = networkd + resolved + populated(1)
  type Outputs = Parameters<typeof programs>[0]
  const lines = (outputs: Readonly<Outputs>) =>
    Object.fromEntries(Object.entries(outputs ?? {}).map(([path, output]) => [busctlLine(path), output]))
  const read = async (changes: string, outputs: Outputs = resolvedOutputs) => {
    const { runner, ran } = programs(lines(outputs))
    return { ...(await readLinkDns(machine('', changes), runner)), ran }
  }

  it('name servers of a link are those of networkd, as addresses, where resolved does not run', async () => {
    expect(await read(networkd + populated(0))).toEqual({ servers: byNetworkd, problems: [], ran: [] })
  })

  it('name servers of a link are those of a running resolved, without those of the host', async () => {
    expect(await read(runs)).toEqual({
      servers: new Map([
        [2, ['203.0.113.53', '203.0.113.55']],
        [4, ['2001:db8::54']],
      ]),
      problems: [],
      ran: Object.keys(resolvedOutputs).map(busctlLine),
    })
  })

  it('a link that was removed since the manager answered has no name servers', async () => {
    const { servers, problems } = await read(runs, {
      ...resolvedOutputs,
      [`${manager}/link/_32`]: refusal(unknownLink),
    })
    expect([[...servers.keys()], problems]).toEqual([[4], []])
  })

  it.each([
    [manager, 'Manager has no property DNS of the type a(iiay)'],
    [`${manager}/link/_33`, 'Link has no property DNS of the type a(iay)'],
  ])(
    'name servers of a link are those of networkd, with a problem, where %s does not report them',
    async (path, problem) => {
      const hanging = () => Promise.reject(new CommandFailed('busctl', 'timed-out', '2400 ms'))
      const silent = await read(runs, { ...resolvedOutputs, [path]: hanging })
      expect(silent).toMatchObject({ servers: byNetworkd, problems: ['busctl: timed-out (2400 ms)'] })
      const odd = await read(runs, { ...resolvedOutputs, [path]: busctlOutput({ DNS: ['as', []] }) })
      expect(odd).toMatchObject({ servers: byNetworkd, problems: [`systemd-resolved: ${problem}`] })
    },
  )

  it.each([
    ['2001db80000000000000000000000001', ['2001:db80::1']],
    ['fe800000000000010000000000000001', ['fe80:0:0:1::1']],
    ['20010db8000100020003000400050000', ['2001:db8:1:2:3:4:5:0']],
    ['00000000000000000000ffffc0000201', ['::ffff:192.0.2.1']],
    ['c00002', undefined],
  ])('name servers of a link are formatted as by the C library: %s', async (digits, expected) => {
    const server = [10, [...Buffer.from(digits, 'hex')]]
    const { servers } = await read(runs, {
      [manager]: busctlOutput({ DNS: ['a(iiay)', [[2, ...server]]] }),
      [`${manager}/link/_32`]: busctlOutput({ DNS: ['a(iay)', [server]] }),
    })
    expect(servers.get(2)).toEqual(expected)
  })
})
