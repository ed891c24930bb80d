import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { HostRecord, HostState } from '../../../../src/cluster/host/host-state.ts'
import { planRestore, type HostChange } from '../../../../src/cluster/host/plan-restore.ts'
import { parseSubnet } from '../../../../src/base/subnet.ts'

// Recorded on a host with podman, a bridge, rules and a policy of its own: before a cluster of kubeadm 1.34.4 with flannel, while it ran, and
// after `kubeadm reset`. Its owner then added a rule and a route.
const recorded = (name: string): HostState =>
  (
    JSON.parse(
      readFileSync(new URL(`../../../fixtures/cluster/host/${name}.json`, import.meta.url), 'utf8'),
    ) as HostRecord
  ).state
const before = recorded('before')
const reset = recorded('reset')
const networks = ['10.244.0.0/16', '10.96.0.0/12'].map((each) => parseSubnet(each)!)

const linesOf = (changes: readonly HostChange[]) =>
  changes.flatMap((each) =>
    each.kind === 'filter' ? each.lines.map((line) => `${each.program} ${each.table} ${line}`) : [],
  )
const namesOf = (changes: readonly HostChange[], kind: HostChange['kind']) =>
  changes.flatMap((each) => (each.kind === kind && 'name' in each ? [each.name] : []))
const pathsOf = (changes: readonly HostChange[]) =>
  changes.flatMap((each) => (each.kind === 'path' ? [each.path] : []))

describe('after kubeadm reset', () => {
  const { changes, left } = planRestore(before, reset, networks)

  it('takes away every rule and chain that came with the cluster, and no other', () => {
    const lines = linesOf(changes)
    expect(lines).toHaveLength(141)
    expect(lines).toContain('iptables-nft filter -D INPUT -j KUBE-FIREWALL')
    expect(lines).toContain(
      'iptables-nft filter -D FORWARD -m comment --comment "flanneld forward" -j FLANNEL-FWD',
    )
    expect(lines).toContain('iptables-nft mangle -X KUBE-KUBELET-CANARY')
    expect(lines).toContain('ip6tables-nft nat -X KUBE-POSTROUTING')
    expect(lines.filter((line) => /PLANT|4711|172\.30|198\.51/.test(line))).toEqual([])
    // Rules of a chain that goes are flushed with it.
    expect(lines.filter((line) => / -D (KUBE|CNI|FLANNEL)-/.test(line))).toEqual([])
    // Only lines for single rules and chains.
    expect(lines.filter((line) => !/ (-D \S+ .+|-[FX] \S+)$/.test(line))).toEqual([])
  })

  it('flushes all chains of a table before it deletes the first one', () => {
    for (const change of changes) {
      if (change.kind !== 'filter') continue
      const kinds = change.lines.map((line) => line.slice(0, 2))
      expect(kinds).toEqual([...kinds].sort((a, b) => '-D-F-X'.indexOf(a) - '-D-F-X'.indexOf(b)))
    }
  })

  it('takes away the interfaces of the network, the files of Kubernetes, the kubelet and its slice', () => {
    expect(namesOf(changes, 'link')).toEqual(['cni-podman0', 'flannel.1'])
    expect(namesOf(changes, 'slice')).toEqual(['kubepods.slice'])
    expect(namesOf(changes, 'unit')).toEqual(['kubelet.service', 'multi-user.target.wants/kubelet.service'])
    expect(pathsOf(changes)).toEqual([
      '/etc/cni/net.d/10-network.conflist',
      '/etc/kubernetes',
      '/opt/cni',
      '/usr/libexec/kubernetes',
      '/var/lib/cni/networks/network',
      '/var/lib/cni/networks/podman',
      '/var/lib/cni/results',
      '/var/log/containers',
      '/var/log/pods',
    ])
  })

  it('puts back the settings of the kernel', () => {
    expect(changes.filter(({ kind }) => kind === 'sysctl')).toContainEqual({
      kind: 'sysctl',
      name: 'net/ipv4/conf/all/route_localnet',
      value: '0',
    })
  })

  it('names what others have added, and leaves it', () => {
    expect(left).toEqual([
      'iptables-nft filter rule -A FORWARD -d 198.51.100.7/32 -j DROP',
      'route 192.0.2.0/24 via 10.77.0.1 dev host0',
    ])
  })
})

it('has nothing to do on a host that is as it was recorded', () => {
  expect(planRestore(before, before, networks)).toEqual({ changes: [], left: [] })
})

it('keeps what had a name of Kubernetes before the cluster', () => {
  expect(planRestore(reset, reset, networks).changes).toEqual([])
})

describe('ends of pods that are still there', () => {
  const running = recorded('running')
  const { changes, left } = planRestore(before, running, networks)

  it('keep their bridge, the chains of CNI and its leases, since they may be of another runtime', () => {
    expect(namesOf(changes, 'link')).toEqual(['flannel.1'])
    expect(linesOf(changes).filter((line) => line.includes(' CNI-'))).toEqual([])
    expect(pathsOf(changes).filter((path) => path.startsWith('/var/lib/cni'))).toEqual([])
    expect(left).toContainEqual(
      expect.stringMatching(/^interface cni-podman0, which veth\w+, .* still uses$/),
    )
    expect(left).toContain('/var/lib/cni')
  })

  it('go with the network namespace that containerd made for the pod', () => {
    expect(running.namespaces.length).toBeGreaterThan(0)
    expect(namesOf(changes, 'namespace')).toEqual(running.namespaces)
  })
})

it('a container of another runtime on a bridge that was there before keeps its chains and leases', () => {
  const bridge = { name: 'cni-podman0', isUp: true }
  const now = {
    ...reset,
    links: [...before.links, bridge, { name: 'vethab12cd34', isUp: true, bridge: bridge.name }],
  }
  const { changes } = planRestore({ ...before, links: [...before.links, bridge] }, now, networks)
  expect(namesOf(changes, 'link')).toEqual([])
  expect(linesOf(changes).filter((line) => line.includes(' CNI-'))).toEqual([])
  expect(linesOf(changes)).toContain('iptables-nft filter -X KUBE-FIREWALL')
  expect(pathsOf(changes).filter((path) => path.startsWith('/var/lib/cni'))).toEqual([])
})

describe('without a record', () => {
  const { changes, left } = planRestore(undefined, reset, networks)

  it('takes away only what has a name of Kubernetes or is in its networks', () => {
    expect(namesOf(changes, 'link')).toEqual(['cni-podman0', 'flannel.1'])
    expect(linesOf(changes).filter((line) => /PLANT|4711|172\.30|198\.51/.test(line))).toEqual([])
    expect(changes.filter(({ kind }) => kind === 'sysctl' || kind === 'policy')).toEqual([])
    expect(left).toEqual([])
  })

  it('leaves the network configurations and plugins of CNI, which may be of another runtime', () => {
    expect(pathsOf(changes).filter((path) => /^\/(etc|opt)\/cni/.test(path))).toEqual([])
  })
})

describe('what other network plugins leave', () => {
  const withRules = (rules: readonly string[], chains: readonly string[] = []): HostState => ({
    ...before,
    filters: before.filters.map((each) =>
      each.program === 'iptables-nft'
        ? {
            ...each,
            tables: each.tables.map((table) =>
              table.name === 'filter'
                ? { ...table, chains: [...table.chains, ...chains], rules: [...table.rules, ...rules] }
                : table,
            ),
          }
        : each,
    ),
  })

  it.each([
    [
      'Calico',
      '-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m mark --mark 0x10000/0x10000 -j ACCEPT',
    ],
    ['Cilium', '-A INPUT -m comment --comment "cilium-feeder: CILIUM_INPUT" -j CILIUM_INPUT'],
    ['a rule for the network of pods', '-A FORWARD -s 10.244.0.0/16 -j ACCEPT'],
  ])('%s: its rule goes', (_, rule) => {
    const { changes, left } = planRestore(before, withRules([rule], ['CILIUM_INPUT']), networks)
    expect(linesOf(changes)).toContain(`iptables-nft filter ${rule.replace('-A', '-D')}`)
    expect(left).toEqual([])
  })

  it.each([
    [
      'a comment that only contains such a word',
      '-A FORWARD -m comment --comment "plant of cali: line 2" -j DROP',
    ],
    ['a text that looks like a jump', '-A FORWARD -m comment --comment "x -j KUBE-SERVICES" -j DROP'],
    ['another network than that of the pods', '-A FORWARD -s 10.0.0.0/8 -j DROP'],
    ['all but the network of pods', '-A FORWARD ! -s 10.244.0.0/16 -j DROP'],
  ])('a rule of the owner stays: %s', (_, rule) => {
    const { changes, left } = planRestore(before, withRules([rule], []), networks)
    expect(changes).toEqual([])
    expect(left).toEqual([`iptables-nft filter rule ${rule}`])
  })

  it('of equal rules only those go that came since', () => {
    const rule = '-A FORWARD -s 10.244.0.0/16 -j ACCEPT'
    const { changes } = planRestore(withRules([rule]), withRules([rule, rule, rule]), networks)
    expect(linesOf(changes)).toEqual(Array(2).fill(`iptables-nft filter ${rule.replace('-A', '-D')}`))
  })

  it('tables of nftables, IP sets, routes to pods and policies of Cilium go; those of others stay', () => {
    const now: HostState = {
      ...before,
      nftTables: [...before.nftTables, 'ip kube-proxy', 'inet cni_plugins_masquerade', 'inet fail2ban'],
      ipSets: ['cali40s:abc', 'fail2ban'],
      routes: [
        ...before.routes,
        { family: 4, text: 'blackhole 10.244.0.0/26 proto bird' },
        { family: 4, text: '10.244.1.0/24 via 10.77.0.12 dev host0' },
        { family: 4, text: '10.8.0.0/24 via 10.77.0.12 dev host0' },
      ],
      policies: [
        ...before.policies,
        { family: 4, text: '9: from all fwmark 0x200/0xf00 lookup 2004' },
        { family: 4, text: '7100: from 10.8.0.0/24 lookup 78' },
      ],
    }
    const { changes, left } = planRestore(before, now, networks)
    expect(changes).toEqual([
      { kind: 'nft-table', table: 'ip kube-proxy' },
      { kind: 'nft-table', table: 'inet cni_plugins_masquerade' },
      { kind: 'ip-set', name: 'cali40s:abc' },
      { kind: 'route', family: 4, text: 'blackhole 10.244.0.0/26 proto bird' },
      { kind: 'route', family: 4, text: '10.244.1.0/24 via 10.77.0.12 dev host0' },
      { kind: 'policy', family: 4, text: '9: from all fwmark 0x200/0xf00 lookup 2004' },
    ])
    expect(left).toEqual([
      'nftables table inet fail2ban',
      'IP set fail2ban',
      'route 10.8.0.0/24 via 10.77.0.12 dev host0',
      'routing policy 7100: from 10.8.0.0/24 lookup 78',
    ])
  })

  it('a network configuration that a plugin has renamed is put back, and its copy removed', () => {
    const [name = '', content] = Object.entries(before.networkConfigs)[0] ?? []
    const folders = before.folders.map((folder) =>
      folder.path === '/etc/cni/net.d'
        ? { ...folder, entries: folder.entries.map((each) => (each === name ? `${name}.cilium_bak` : each)) }
        : folder,
    )
    const others = Object.fromEntries(Object.entries(before.networkConfigs).filter(([each]) => each !== name))
    const now = { ...before, folders, networkConfigs: { ...others, [`${name}.cilium_bak`]: content ?? '' } }
    expect(planRestore(before, now, networks).changes).toEqual([
      { kind: 'path', path: `/etc/cni/net.d/${name}.cilium_bak` },
      { kind: 'network-config', name, content },
    ])
  })

  it('a folder that was not there goes as a whole, also the one above the network configurations', () => {
    const withCni = (exists: boolean, entries: readonly string[]): HostState => {
      const others = before.folders.filter(({ path }) => !path.startsWith('/etc/cni'))
      const below = entries.filter((each) => each.startsWith('net.d/')).map((each) => each.slice(6))
      const own = [
        { path: '/etc/cni', exists, entries },
        { path: '/etc/cni/net.d', exists: entries.includes('net.d'), entries: below },
      ]
      return { ...before, folders: [...own, ...others], networkConfigs: {} }
    }
    const now = withCni(true, ['net.d', 'net.d/10-network.conflist'])
    const pathsAfter = (then: HostState) => pathsOf(planRestore(then, now, networks).changes)
    expect(pathsAfter(withCni(false, []))).toEqual(['/etc/cni'])
    expect(pathsAfter(withCni(true, []))).toEqual(['/etc/cni/net.d'])
    expect(pathsAfter(withCni(true, ['net.d']))).toEqual(['/etc/cni/net.d/10-network.conflist'])
    // Its record is of a version that did not know the folder above.
    const older = withCni(false, [])
    const folders = older.folders.filter(({ path }) => path !== '/etc/cni')
    expect(pathsAfter({ ...older, folders })).toEqual(['/etc/cni/net.d'])
  })

  it('the interface tunl0, which cannot be deleted, is put down', () => {
    const withTunnel = (isUp: boolean) => ({ ...before, links: [...before.links, { name: 'tunl0', isUp }] })
    expect(planRestore(before, withTunnel(true), networks).changes).toEqual([
      { kind: 'quiet-link', name: 'tunl0' },
    ])
    expect(planRestore(before, withTunnel(false), networks)).toEqual({
      changes: [],
      left: ['interface tunl0, which is a part of a kernel module'],
    })
  })
})
