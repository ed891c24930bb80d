import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'

const isRoot = process.getuid?.() === 0
const has = (name: string) =>
  ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((folder) => existsSync(`${folder}/${name}`))
const hasTools = ['ip', 'nft', 'unshare'].every(has)
const sources = new URL('../../../../src', import.meta.url).pathname

// A device at the other end of a cable, with a firewall that drops every packet of IPv4.
const network = `
set -eu
mount -t tmpfs tmpfs /run
ip link set lo up; ip netns add device
ip link add cable0 type veth peer name eth0 netns device
ip addr add 10.9.0.1/24 dev cable0; ip addr add fd09::1/64 dev cable0 nodad; ip link set cable0 up
inside() { ip netns exec device "$@"; }
inside ip link set eth0 address 02:00:00:00:09:02; inside ip link set eth0 up
inside ip addr add 10.9.0.2/24 dev eth0; inside ip addr add fd09::2/64 dev eth0 nodad
inside nft 'add table ip wall; add chain ip wall in { type filter hook input priority 0; policy drop; }; add chain ip wall out { type filter hook output priority 0; policy drop; }'
exec "$NODE" --input-type=module --eval "$PROGRAM"
`

const program = `
import { findAnsweringDevice } from '${sources}/host/network/answering-device.ts'
import { createHostFiles } from '${sources}/host/files.ts'
import { createRunner } from '${sources}/system/runner.ts'
const options = { files: createHostFiles(), runner: createRunner() }
const find = (address) => findAnsweringDevice({ address, networkInterface: 'cable0' }, options, new AbortController().signal)
const addresses = ['10.9.0.2', '10.9.0.3', 'fd09::2', 'fd09::3']
console.log(JSON.stringify(await Promise.all(addresses.map(async (address) => [address, (await find(address)) ?? 'free']))))
// The second question comes while the kernel remembers that there is none.
console.log((await find('10.9.0.3')) ?? 'free')
const ended = await findAnsweringDevice({ address: '10.9.0.4', networkInterface: 'cable0' }, options, AbortSignal.timeout(100)).catch((error) => error.name)
console.log(ended)
`

it.skipIf(!isRoot || !hasTools)(
  'a device that has the address answers, also behind a firewall that drops everything; a free address stays without an answer',
  () => {
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['--net', '--mount', '--propagation', 'private', '--', 'sh', '-c', network],
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...{ PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE: process.execPath, PROGRAM: program },
          NODE_NO_WARNINGS: '1',
        },
      },
    )
    expect(stderr).toBe('')
    const [first = '', ...others] = stdout.trim().split('\n')
    expect(JSON.parse(first)).toEqual([
      ['10.9.0.2', '02:00:00:00:09:02'],
      ['10.9.0.3', 'free'],
      ['fd09::2', '02:00:00:00:09:02'],
      ['fd09::3', 'free'],
    ])
    expect(others).toEqual(['free', 'AbortError'])
  },
)
