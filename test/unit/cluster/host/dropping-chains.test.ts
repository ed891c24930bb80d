import { expect, it } from 'vitest'
import {
  parseLegacyChains,
  parseNftChains,
  readDroppingChains,
} from '../../../../src/cluster/host/preflight/dropping-chains.ts'
import { CommandFailed, type CommandRunner } from '../../../../src/system/runner.ts'

// Printed by nft 1.0.6.
const chains =
  '{"nftables": [{"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}, {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "handle": 2, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "output", "handle": 3, "type": "filter", "hook": "output", "prio": 0, "policy": "drop"}}, {"chain": {"family": "inet", "table": "plantwall", "name": "services", "handle": 4}}, {"chain": {"family": "ip", "table": "nat", "name": "INPUT", "handle": 2, "type": "nat", "hook": "input", "prio": 100, "policy": "accept"}}]}'

it('chains for incoming and forwarded packets with the policy drop are named, of nft and of both variants of iptables', () => {
  expect(parseNftChains(chains)).toEqual([
    'chain FORWARD of table ip filter',
    'chain input of table inet plantwall',
  ])
  expect(
    parseLegacyChains('*filter\n:INPUT DROP [3:180]\n:FORWARD ACCEPT [0:0]\n:ufw-x - [0:0]\nCOMMIT\n'),
  ).toEqual(['chain INPUT of iptables-legacy'])
})

it.each(['', 'nonsense', '{}'])('an answer %j names none', (text) => {
  expect(parseNftChains(text)).toEqual([])
  expect(parseLegacyChains(text)).toEqual([])
})

it('a host without these programs, or whose programs fail, has none', async () => {
  const failing: CommandRunner = { run: () => Promise.reject(new CommandFailed('nft', 'not-started', '')) }
  expect(await readDroppingChains(failing)).toEqual([])
})
