import { join } from 'node:path'
import { execa } from 'execa'
import { expect, it } from 'vitest'

const rooms = join(import.meta.dirname, '../../../src')
const program = `
const { createHostFiles } = await import('${rooms}/host/files.ts')
const { createAskIp, readNetwork, readIpv4Addresses } = await import('${rooms}/host/network/network.ts')
const { createRunner } = await import('${rooms}/system/runner.ts')
const { nics } = await readNetwork(createHostFiles(), readIpv4Addresses, createAskIp(createRunner(), () => 0))
console.log(JSON.stringify(nics.find(({ nicName }) => nicName === 'eth7')))`

/** Reads the network of a machine whose only interface was set up by these commands of ip(8). */
async function networkOf(...commands: readonly string[]): Promise<unknown> {
  const script = [
    'set -e; mount -t sysfs sysfs /sys; ip link set lo up; ip link add eth7 type veth peer name sw7',
    'ip link set sw7 up; ip link set eth7 up',
    ...commands.map((command) => `ip ${command}`),
    `"$0" --input-type=module --eval "$1"`,
  ].join('\n')
  const { stdout } = await execa('unshare', [
    ...['--net', '--mount', 'bash', '-c', script, process.execPath, program],
  ])
  return JSON.parse(stdout)
}

it.skipIf(process.getuid?.() !== 0)(
  'the address of a host is the preferred one with a network, also behind a default route of another table',
  async () => {
    expect(
      await networkOf(
        'address add 192.0.2.50/32 dev eth7',
        'address add 192.0.2.9/24 dev eth7 preferred_lft 0',
        'address add 192.0.2.10/24 dev eth7',
        'route add default via 192.0.2.1 table 100',
      ),
    ).toMatchObject({ ip: '192.0.2.10', subnet: '255.255.255.0', gateway: '192.0.2.1', isDefault: true })
  },
)
