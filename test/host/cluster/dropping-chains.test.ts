import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseSavedChains, parseNftChains, readDroppingChains } from '../../../src/cluster/host/host-facts.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'

const rooms = join(import.meta.dirname, '../../../src')

// Printed by nft 1.0.6.
const chains =
  '{"nftables": [{"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}, {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "handle": 2, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "output", "handle": 3, "type": "filter", "hook": "output", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "services", "handle": 4}}, {"chain": {"family": "ip", "table": "nat", "name": "INPUT", "handle": 2, "type": "nat", "hook": "input", "prio": 100, "policy": "accept"}}]}'

it('chains for incoming and forwarded packets with the policy drop are named, of nft and of both variants of iptables', () => {
  expect(parseNftChains(chains)).toEqual([
    'chain FORWARD of table ip filter',
    'chain input of table inet plantwall',
  ])
  expect(
    parseSavedChains(
      '*filter\n:INPUT DROP [3:180]\n:FORWARD ACCEPT [0:0]\n:ufw-x - [0:0]\nCOMMIT\n',
      'legacy',
    ),
  ).toEqual(['chain INPUT of iptables-legacy'])
})

const nft = (...rules: readonly (readonly [chain: string, ...expr: readonly object[]])[]) =>
  parseNftChains(
    JSON.stringify({
      nftables: [
        ...['INPUT', 'FORWARD'].map((name) => ({
          chain: {
            ...{ family: 'ip', table: 'filter', name, type: 'filter', policy: 'accept' },
            hook: name.toLowerCase(),
          },
        })),
        ...['own', 'last'].map((name) => ({ chain: { family: 'ip', table: 'filter', name } })),
        ...rules.map(([chain, ...expr]) => ({ rule: { family: 'ip', table: 'filter', chain, expr } })),
      ],
    }),
  )
const [accept, drop, jump] = [{ accept: null }, { drop: null }, { jump: { target: 'own' } }]
const match = { match: { op: 'in', left: { ct: { key: 'state' } }, right: 'established' } }
const counter = { counter: { packets: 0, bytes: 0 } }
const xt = (type: string, name: string) => ({ xt: { type, name } })
const input = ['chain INPUT of table ip filter']

it.each([
  [
    'drop',
    [
      ['INPUT', match, accept],
      ['INPUT', drop],
    ],
    input,
  ],
  ['reject', [['INPUT', counter, { log: null }, { reject: { type: 'icmpx' } }]], input],
  ['REJECT of iptables', [['INPUT', counter, xt('target', 'REJECT')]], input],
  ['drop with a comment', [['INPUT', xt('match', 'comment'), counter, drop]], input],
  [
    'jump to a chain that drops',
    [
      ['INPUT', jump],
      ['own', match, accept],
      ['own', drop],
    ],
    input,
  ],
  [
    'jump to a chain that goes to one that drops',
    [
      ['INPUT', jump],
      ['own', { goto: { target: 'last' } }],
      ['last', drop],
    ],
    input,
  ],
  [
    'jump that comes back before a drop',
    [
      ['INPUT', jump],
      ['own', { return: null }],
      ['own', accept],
      ['INPUT', drop],
    ],
    input,
  ],
  [
    'drop with a condition',
    [
      ['INPUT', match, drop],
      ['INPUT', xt('match', 'conntrack'), drop],
    ],
    [],
  ],
  [
    'accept before the drop',
    [
      ['INPUT', accept],
      ['INPUT', drop],
    ],
    [],
  ],
  [
    'jump to a chain that accepts',
    [
      ['INPUT', jump],
      ['own', accept],
      ['INPUT', drop],
    ],
    [],
  ],
  [
    'goto that does not come back to the drop',
    [
      ['INPUT', { goto: { target: 'own' } }],
      ['INPUT', drop],
    ],
    [],
  ],
  ['drop in a chain that none reaches', [['own', drop]], []],
  [
    'loop of jumps',
    [
      ['INPUT', jump],
      ['own', jump],
    ],
    [],
  ],
] as const)('the end of a chain by rules: %s', (_, rules, expected) => {
  expect(nft(...rules)).toEqual(expected)
})

it('rules of the old iptables count as those of nft', () => {
  const rules = (...lines: readonly string[]) =>
    parseSavedChains(
      [
        '*filter',
        ':INPUT ACCEPT [0:0]',
        ':FORWARD ACCEPT [0:0]',
        ':own - [0:0]',
        ...lines,
        'COMMIT',
        '',
      ].join('\n'),
      'legacy',
    )
  const forward = ['chain FORWARD of iptables-legacy']
  expect(
    rules('-A FORWARD -m comment --comment "a \\"b\\" c" -j REJECT --reject-with icmp-host-prohibited'),
  ).toEqual(forward)
  expect(rules('-A FORWARD -j own', '-A own -p tcp -j ACCEPT', '-A own -j DROP')).toEqual(forward)
  expect(rules('-A FORWARD -s 10.0.0.0/8 -j DROP', '-A FORWARD -j LOG', '-A FORWARD -j ACCEPT')).toEqual([])
  const raw = '*raw\n:PREROUTING DROP [0:0]\nCOMMIT\n*nat\n:PREROUTING DROP [0:0]\nCOMMIT\n'
  expect(parseSavedChains(raw, 'legacy')).toEqual(['chain PREROUTING of iptables-legacy, table raw'])
})

const ofIptables = [
  ['! -i lo -j REJECT', true],
  ['-p tcp -j REJECT --reject-with tcp-reset', true],
  ['-p tcp --syn -j REJECT', true],
  ['-p udp -j DROP', true],
  ['-m conntrack --ctstate NEW -j REJECT', true],
  ['-m state --state NEW,INVALID -j DROP', true],
  ['-m conntrack ! --ctstate ESTABLISHED,RELATED -j DROP', true],
  ['-m conntrack --ctstate INVALID -j DROP', false],
  ['-i lo -j DROP', false],
  ['-p tcp --dport 23 -j REJECT', false],
  ['-s 10.9.0.0/16 -j REJECT', false],
  ['-p icmp -j DROP', false],
] as const
const ofNft = [
  ['meta l4proto tcp reject with tcp reset', true],
  ['ct state new reject', true],
  ['ct state { new, invalid } drop', true],
  ['ct state != { established, related } drop', true],
  ['ct state vmap { established : accept, invalid : drop, new : jump rest }', true],
  ['meta l4proto vmap { tcp : drop, udp : drop }', true],
  ['iif != lo drop', true],
  ['iifname != "lo" reject', true],
  ['iifname != { "lo", "cni0" } reject', false],
  ['ip saddr 0.0.0.0/0 drop', true],
  ['tcp flags & (fin|syn|rst|ack) == syn reject', true],
  ['meta mark set 0x1 counter reject', true],
  ['notrack drop', true],
  ['add @seen { ip saddr } drop', true],
  ['limit rate over 10/second drop', false],
  ['ct state established reject', false],
  ['iif lo drop', false],
  ['ct state vmap { established : accept, invalid : drop }', false],
  ['meta nfproto ipv6 drop', false],
] as const
const appended = (rule: string) => `iptables -A FORWARD ${rule}`
const inTable = (rule: string) =>
  `nft 'table inet site {\nset seen {\ntype ipv4_addr\nsize 128\nflags dynamic,timeout\ntimeout 1m\n}\nchain rest {\nreject\n}\nchain shut {\ntype filter hook prerouting priority -150\n${rule}\n}\n}'`
const both = `
  iptables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
  iptables -A INPUT -p tcp --dport 22 -j ACCEPT
  iptables -A INPUT -j REJECT --reject-with icmp-host-prohibited
  iptables -A FORWARD -j REJECT --reject-with icmp-host-prohibited
  nft 'table inet site {
    chain open { type filter hook input priority 0
      tcp dport 9 drop
    }
    chain rest { counter reject with icmpx admin-prohibited
    }
    chain shut { type filter hook forward priority 0
      ct state established accept
      jump rest
    }
  }'`

describe.skipIf(process.getuid?.() !== 0)('a firewall of a real kernel', () => {
  const scripts = [
    both,
    ...ofIptables.map(([rule]) => appended(rule)),
    ...ofNft.map(([rule]) => inTable(rule)),
  ]
  const found = new Map<string, unknown>()
  // One process for all of them, in a network of its own.
  beforeAll(async () => {
    const program = `
      const { execFileSync } = await import('node:child_process')
      const { createRunner } = await import('${rooms}/system/runner.ts')
      const { readDroppingChains } = await import('${rooms}/cluster/host/host-facts.ts')
      const found = []
      for (const script of JSON.parse(process.argv[1])) {
        execFileSync('bash', ['-ec', 'nft flush ruleset; ' + script])
        found.push(await readDroppingChains(createRunner()))
      }
      console.log(JSON.stringify(found))`
    const command = [process.execPath, '--input-type=module', '--eval', program, JSON.stringify(scripts)]
    const { stdout } = await execa('unshare', ['--net', ...command])
    for (const [index, chains] of (JSON.parse(stdout) as unknown[]).entries())
      found.set(scripts[index] ?? '', chains)
  })

  it('that ends in REJECT is found, with iptables and with nft', () => {
    expect(found.get(both)).toEqual([
      'chain INPUT of table ip filter',
      'chain FORWARD of table ip filter',
      'chain shut of table inet site',
    ])
  })

  it.each(ofIptables)(
    'is found by a rule of iptables that every connection of a pod meets: %s',
    (rule, isFound) => {
      expect(found.get(appended(rule))).toEqual(isFound ? ['chain FORWARD of table ip filter'] : [])
    },
  )

  it.each(ofNft)('is found by a rule of nft that every connection of a pod meets: %s', (rule, isFound) => {
    expect(found.get(inTable(rule))).toEqual(isFound ? ['chain shut of table inet site'] : [])
  })
})

it('a chain for ARP drops no connection of a pod', () => {
  const chain = {
    family: 'arp',
    table: 'filter',
    name: 'INPUT',
    type: 'filter',
    hook: 'input',
    policy: 'drop',
  }
  expect(parseNftChains(JSON.stringify({ nftables: [{ chain }] }))).toEqual([])
})

it.each(['', 'nonsense', '{}'])('an answer %j names none', (text) => {
  expect(parseNftChains(text)).toEqual([])
  expect(parseSavedChains(text, 'nft')).toEqual([])
})

it('a host without these programs, or whose programs fail, has none', async () => {
  const failing: CommandRunner = { run: () => Promise.reject(new CommandFailed('nft', 'not-started', '')) }
  expect(await readDroppingChains(failing)).toEqual([])
})
