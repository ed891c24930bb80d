import { describe, expect, it } from 'vitest'
import { kubernetesSettings } from '../../../../src/cluster/host/kubernetes-settings.ts'
import { judgeResolver, readResolver } from '../../../../src/cluster/host/host-preflight.ts'
import { machine } from '../../../fixtures/host/tree.ts'

const resolvedRuns = '/sys/fs/cgroup/system.slice/systemd-resolved.service/cgroup.events = populated 1\n'
const file = (path: string, text: string) => `${path} <<\n${text}\n>>\n`
const etc = (text: string) => file('/etc/resolv.conf', text)
const uplink = (text: string) => file('/run/systemd/resolve/resolv.conf', text)

async function judge(host: string, config = '') {
  const settings = kubernetesSettings(config)
  return judgeResolver(await readResolver(machine('', host), settings), settings)
}
const codes = async (...args: Parameters<typeof judge>) =>
  (await judge(...args)).map(({ code, severity }) => `${severity} ${code}`)
const messages = async (...args: Parameters<typeof judge>) =>
  (await judge(...args)).map(({ message }) => message).join('\n')

const refused = ['error ResolverUnusable']

describe('the name servers that pods get', () => {
  it.each([
    ['an address', 'nameserver 192.0.2.53'],
    ['one that does not answer, of a documentation network', 'nameserver 203.0.113.1'],
    ['an IPv6 address', 'nameserver 2001:db8::53'],
    ['a link-local address with its interface', 'nameserver fe80::1%eth0'],
    ['an address of this host in its network, where dnsmasq may answer', 'nameserver 10.77.0.1'],
  ])('%s is a name server', async (_what, text) => {
    expect(await codes(etc(text))).toEqual([])
  })

  it.each([
    ['a carriage return', 'nameserver 192.0.2.53\r'],
    ['a blank before it', '  nameserver 192.0.2.53 # the router'],
  ])('one with %s, which the kubelet takes away, is a warning: this host has none', async (_what, text) => {
    expect(await codes(etc(text))).toEqual(['warning ResolverUnusable'])
    expect(await messages(etc(text))).toContain('192.0.2.53 counts for pods and not for this host itself')
    const config = 'kubeletConfiguration: {resolvConf: /etc/of-pods}'
    expect(await codes(file('/etc/of-pods', text), config)).toEqual([])
  })

  it.each([
    ['an empty file', '', 'names no name server'],
    ['comments only', '# nameserver 192.0.2.53\n;nameserver 192.0.2.54', 'names no name server'],
    ['a search list only', 'search plant.example', 'names no name server'],
    ['a name in place of an address', 'nameserver dns.example', '"dns.example" is no address'],
    ['a port after a number sign', 'nameserver 192.0.2.53#53', '"192.0.2.53#53" is no address'],
    ['a port after a colon', 'nameserver 192.0.2.53:53', '"192.0.2.53:53" is no address'],
    ['the loopback', 'nameserver 127.0.0.1', '127.0.0.1'],
    ['the loopback in its short form', 'nameserver 127.1', '127.0.0.1'],
    ['an address that only the C library reads', 'nameserver 010.0.2.53', 'C library only: write 8.0.2.53'],
    ['a number', 'nameserver 3221226037', 'C library only: write 192.0.2.53'],
    ['a dot at the end', 'nameserver 192.0.2.53.', '"192.0.2.53." is no address'],
    ['a byte order mark before its only line', '\ufeffnameserver 192.0.2.53', 'names no name server'],
    ['a byte order mark as a blank', 'nameserver\ufeff192.0.2.53', 'names no name server'],
    ['another address of the loopback', 'nameserver 127.0.1.1', '127.0.1.1'],
    ['the loopback of IPv6', 'nameserver ::1', '::1'],
    ['the loopback in IPv6', 'nameserver ::ffff:127.0.0.1', '127.0.0.1'],
    ['the address that stands for this host', 'nameserver 0.0.0.0', '0.0.0.0'],
    ['the stub of resolved, which does not run', 'nameserver 127.0.0.53', '127.0.0.53'],
    ['CoreDNS itself', 'nameserver 10.96.0.10', '10.96.0.10'],
    [
      'a line without an address, with which no pod starts',
      'nameserver 192.0.2.53\nnameserver',
      'without an address',
    ],
    [
      'a server after the three that the kubelet takes',
      'nameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver ::1\nnameserver 192.0.2.53',
      'takes the first 3 only',
    ],
  ])('%s is none, and the message says why and what to do', async (_what, text, why) => {
    expect(await codes(etc(text))).toEqual(refused)
    const said = await messages(etc(text))
    expect(said).toContain('/etc/resolv.conf')
    expect(said).toContain(why)
    expect(said).toContain('write a line "nameserver ADDRESS"')
    expect(said).toContain('kubeletConfiguration.resolvConf')
  })

  it('one that leads back beside others is a warning: CoreDNS asks one at random', async () => {
    expect(await codes(etc('nameserver 192.0.2.53\nnameserver 127.0.0.1'))).toEqual([
      'warning ResolverUnusable',
    ])
  })

  it('a host without the file starts no pod', async () => {
    expect(await codes('')).toEqual(refused)
    expect(await messages('')).toContain('/etc/resolv.conf is not on this host')
  })

  it('a folder in its place is named', async () => {
    expect(await codes('/etc/resolv.conf/\n')).toEqual(refused)
    expect(await messages('/etc/resolv.conf/\n')).toContain(
      '/etc/resolv.conf is a folder, not a regular file, and without it the kubelet starts no pod',
    )
  })

  it('where resolved runs the kubelet gets the file with its servers, whatever /etc/resolv.conf says', async () => {
    const stub = etc('nameserver 127.0.0.53')
    expect(await codes(resolvedRuns + stub + uplink('nameserver 192.0.2.53'))).toEqual([])
    const empty = resolvedRuns + stub + uplink('# No DNS servers known.\nsearch .')
    expect(await codes(empty)).toEqual(refused)
    expect(await messages(empty)).toContain('systemd-resolved has no name server')
    expect(await messages(empty)).toContain('DNS= in /etc/systemd/resolved.conf')
    expect(await codes(resolvedRuns + etc('nameserver 192.0.2.53'))).toEqual(refused)
  })

  it('a file of the pack comes before all others', async () => {
    const config = 'kubeletConfiguration: {resolvConf: /etc/kubernetes-resolv.conf}'
    const given = file('/etc/kubernetes-resolv.conf', 'nameserver 192.0.2.53')
    expect(await codes(resolvedRuns + etc('') + given, config)).toEqual([])
    expect(await codes(etc('nameserver 192.0.2.53'), config)).toEqual(refused)
    expect(await messages(etc(''), config)).toContain('named by kubeletConfiguration.resolvConf')
    expect(await codes(etc('nameserver 192.0.2.53'), "kubeletConfiguration: {resolvConf: ''}")).toEqual(
      refused,
    )
  })

  it('an argument of the kubelet comes before the file of its configuration', async () => {
    const config =
      'initConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: resolv-conf, value: /etc/of-pods}]}}\nkubeletConfiguration: {resolvConf: /etc/other}'
    expect(await codes(file('/etc/of-pods', 'nameserver 192.0.2.53'), config)).toEqual([])
  })

  it('the network of services is that of the pack', async () => {
    const config = 'clusterConfiguration: {networking: {serviceSubnet: 192.0.2.0/24}}'
    expect(await codes(etc('nameserver 192.0.2.53'), config)).toEqual(refused)
    expect(await codes(etc('nameserver 10.96.0.10'), config)).toEqual([])
  })

  it.each([
    'initConfiguration: {skipPhases: [addon/coredns]}',
    'initConfiguration: {skipPhases: [addon]}',
    'clusterConfiguration: {dns: {disabled: true}}',
  ])('without CoreDNS it is a warning: %s', async (config) => {
    expect(await codes(etc(''), config)).toEqual(['warning ResolverUnusable'])
  })
})
