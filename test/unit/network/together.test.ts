import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createPlanner } from '../../../src/network/planner.ts'
import { readLinks } from '../../../src/network/links/links.ts'
import { readNic } from '../../../src/network/wanted.ts'
import type { NicRequest } from '../../../src/network/schemas.ts'
import {
  capturedHost,
  type CapturedBackend,
  type CapturedHost,
  type Changes,
} from '../../support/network-host.ts'

const programs = { '/usr/bin/arping': '', '/run/dbus/system_bus_socket': '' }

/** Plans changes of a captured host together. */
async function plan(
  host: CapturedHost,
  interfaces: Readonly<Record<string, NicRequest>>,
  clusterAddresses: readonly string[] = [],
) {
  const read = () => readLinks(host)
  const planner = createPlanner({ ...host, read, clusterAddresses: () => clusterAddresses })
  const all = Object.entries(interfaces).map(([name, body]) => ({ name, read: readNic(name, body) }))
  const { problems, ...prepared } = await planner.prepareTogether(all)
  return { ...prepared, problems: problems.map(({ name, field, reason }) => `${name}: ${field} ${reason}`) }
}
const hostOf = (backend: CapturedBackend, { files = {}, output = {} }: Changes = {}) =>
  capturedHost(backend, { files: { ...programs, ...files }, output })

const fixed = (ip: string, gateway?: string): NicRequest => ({
  type: 'static',
  ip,
  subnet: '255.255.255.0',
  ...(gateway === undefined ? {} : { gateway }),
})
const textOf = (files: readonly { path: string; content: unknown }[], path: string) =>
  (files.find((file) => file.path === path)?.content as { text: string } | undefined)?.text

describe('several NICs in one trial', () => {
  it('of networkd have a file each, and one change set names both', async () => {
    const { problems, change, changesWayOut } = await plan(hostOf('networkd'), {
      eth0: fixed('198.18.0.9'),
      eth1: fixed('198.19.0.9', '198.19.0.1'),
    })
    expect(problems).toEqual([])
    expect(change).toMatchObject({
      backend: 'networkd',
      links: ['eth0', 'eth1'],
      summary: 'eth0: address 198.18.0.9/24; eth1: address 198.19.0.9/24, gateway 198.19.0.1',
      before: {
        files: [{ content: 'absent' }, { content: 'absent' }],
        expected: [{ link: 'eth0', gateway: '192.0.2.1' }, { link: 'eth1' }],
      },
      after: {
        expected: [
          { link: 'eth0', addresses: ['198.18.0.9/24', '2001:db8:1::20/64'] },
          { link: 'eth1', addresses: ['198.19.0.9/24'], gateway: '198.19.0.1' },
        ],
      },
      // The host was in neither network before.
      asked: [
        { link: 'eth0', address: '198.18.0.9' },
        { link: 'eth1', address: '198.19.0.9' },
      ],
    })
    expect(change?.kept.map(({ path }) => path)).toEqual([
      '/usr/local/lib/systemd/network/05-edgehostd-eth0.network',
      '/usr/local/lib/systemd/network/05-edgehostd-eth1.network',
    ])
    expect(changesWayOut).toBe(true)
  })

  it('of NetworkManager have a profile each', async () => {
    const { problems, change } = await plan(hostOf('networkmanager'), {
      eth0: fixed('198.18.0.9', '198.18.0.1'),
      eth1: fixed('198.19.0.9'),
    })
    expect(problems).toEqual([])
    expect(change?.kept.map(({ path }) => path)).toEqual([
      '/etc/NetworkManager/system-connections/plant.nmconnection',
      '/etc/NetworkManager/system-connections/second.nmconnection',
    ])
    expect(change?.after.up).toHaveLength(2)
  })

  it('of ifupdown are in one flattened file, also where one file holds both stanzas', async () => {
    const file = '/etc/network/interfaces'
    const both = `auto eth0\niface eth0 inet static\n\taddress 192.0.2.20/24\n\tgateway 192.0.2.1\nauto eth1\niface eth1 inet dhcp\n`
    const host = hostOf('ifupdown', {
      files: { [file]: both, '/etc/network/interfaces.d/eth1': undefined },
    })
    const { problems, change } = await plan(host, {
      eth0: fixed('198.18.0.9', '198.18.0.1'),
      eth1: fixed('198.19.0.9'),
    })
    expect(problems).toEqual([])
    expect(change?.kept.map(({ path }) => path)).toEqual([file])
    const after =
      'auto eth0\niface eth0 inet static\n\taddress 198.18.0.9/24\n\tgateway 198.18.0.1\nauto eth1\niface eth1 inet static\n    address 198.19.0.9/24\n'
    expect(textOf(change?.kept ?? [], file)).toBe(after)
    expect(textOf(change?.after.files ?? [], file)).toBe(after)
    // The revert has neither.
    expect(textOf(change?.before.files ?? [], file)).toBe(both)
    expect(change?.after.up).toEqual(['eth0', 'eth1'])
  })

  it('of netplan are in one file of YAML, and each has its generated file', async () => {
    const { runner, ...host } = hostOf('netplan')
    const path = '/etc/netplan/50-plant.yaml'
    /** Makes a file for each NIC, as netplan does. */
    async function generate(folder: string): Promise<void> {
      const made = join(folder, 'run/systemd/network')
      await mkdir(made, { recursive: true })
      for (const name of await readdir(join(folder, 'etc/netplan'))) {
        const text = await readFile(join(folder, 'etc/netplan', name), 'utf8')
        const { network } = parse(text) as {
          network: { ethernets: Record<string, { addresses?: string[] }> }
        }
        for (const [id, { addresses = [] }] of Object.entries(network.ethernets))
          await writeFile(
            join(made, `10-netplan-${id}.network`),
            `[Match]\nName=${id}\n[Network]\n${addresses.map((each) => `Address=${each}\n`).join('')}`,
          )
      }
    }
    const { problems, change } = await plan(
      {
        ...host,
        runner: {
          async run(program, args, options) {
            if (program !== 'netplan') return runner.run(program, args, options)
            await generate(args[2] ?? '')
            return { exitCode: 0, stdout: '', stderr: '' }
          },
        },
      },
      { eth0: fixed('198.18.0.9', '198.18.0.1'), eth1: fixed('198.19.0.9') },
    )
    expect(problems).toEqual([])
    const kept = textOf(change?.kept ?? [], path)
    expect(kept).toContain('198.18.0.9/24')
    expect(kept).toContain('198.19.0.9/24')
    expect(textOf(change?.after.files ?? [], '/run/netplan/50-plant.yaml')).toBe(kept)
    expect(change?.before.files.find((file) => file.path === '/run/netplan/50-plant.yaml')?.content).toBe(
      'absent',
    )
    const generated = '/run/systemd/network/10-netplan-eth1.network'
    expect(textOf(change?.after.files ?? [], generated)).toContain('Address=198.19.0.9/24')
    expect(textOf(change?.before.files ?? [], generated)).not.toContain('198.19.0.9')
  })
})

describe('NICs that change together are judged as they will be', () => {
  it('may exchange their addresses', async () => {
    const host = hostOf('networkd', {
      files: {
        '/etc/systemd/network/30-second.network': '[Match]\nName=eth1\n[Network]\nAddress=198.18.0.7/24\n',
      },
      output: {
        'ip -json -details address show': (text) => text.replace('"192.0.2.129"', '"198.18.0.7"'),
        'ip -json -details route show table all': (text) =>
          JSON.stringify((JSON.parse(text) as { dev: string }[]).filter(({ dev }) => dev !== 'eth1')),
      },
    })
    const alone = await plan(host, { eth1: fixed('192.0.2.20') })
    expect(alone.problems).toEqual([expect.stringContaining('eth1: ip 192.0.2.20 is an address of eth0')])
    const both = await plan(host, {
      eth0: fixed('198.18.0.7', '198.18.0.1'),
      eth1: fixed('192.0.2.20'),
    })
    expect(both.problems).toEqual([])
    expect(both.change?.links).toEqual(['eth0', 'eth1'])
  })

  it('leave the host a default route, and not two of a metric', async () => {
    const host = hostOf('networkd')
    const none = await plan(host, { eth0: fixed('198.18.0.9'), eth1: fixed('198.19.0.9') })
    expect(none.problems).toEqual([
      expect.stringContaining('eth0: gateway would leave this host without a default route'),
      expect.stringContaining('eth1: gateway would leave this host without a default route'),
    ])
    // A lease brings one.
    const lease = await plan(host, { eth0: fixed('198.18.0.9'), eth1: { type: 'dhcp' } })
    expect(lease.problems).toEqual([])
    const same = hostOf('networkd', {
      files: { '/etc/systemd/network/30-second.network': '[Match]\nName=eth1\n[Network]\nDHCP=ipv4\n' },
      output: {
        'ip -json -details route show table all': (text) => text.replaceAll('"metric":300', '"metric":0'),
      },
    })
    const two = await plan(same, {
      eth0: fixed('198.18.0.9', '198.18.0.1'),
      eth1: fixed('198.19.0.9', '198.19.0.1'),
    })
    expect(two.problems).toEqual([
      expect.stringContaining('eth0: gateway makes a second default route of the metric 0'),
      expect.stringContaining('eth1: gateway makes a second default route of the metric 0'),
    ])
  })

  it('are not put into one network', async () => {
    const { problems } = await plan(hostOf('networkd'), {
      eth0: fixed('198.18.0.9', '198.18.0.1'),
      eth1: fixed('198.18.0.10'),
    })
    expect(problems).toEqual([
      expect.stringContaining('eth0: ip 198.18.0.0/24 is the network of eth1 too'),
      expect.stringContaining('eth1: ip 198.18.0.0/24 is the network of eth0 too'),
    ])
  })

  it('of two programs are refused with the way to go', async () => {
    const host = hostOf('networkd')
    const read = async () => {
      const { links, ...reading } = await readLinks(host)
      const other = (await readLinks(hostOf('ifupdown'))).links.find(({ name }) => name === 'eth1')
      return {
        ...reading,
        links: links.map((link) =>
          link.name === 'eth1' && other !== undefined ? { ...link, owner: other.owner } : link,
        ),
      }
    }
    const planner = createPlanner({ ...host, read, clusterAddresses: () => [] })
    const { problems, change } = await planner.prepareTogether([
      { name: 'eth0', read: readNic('eth0', fixed('198.18.0.9', '198.18.0.1')) },
      { name: 'eth1', read: readNic('eth1', fixed('198.19.0.9')) },
    ])
    expect(change).toBeUndefined()
    expect(problems).toEqual([
      {
        name: 'eth1',
        field: 'name',
        reason:
          'is configured by ifupdown, and eth0 by systemd-networkd: a trial is of links of one of them; send them one after the other',
      },
    ])
  })

  it('say all problems, each with its link, and plan nothing', async () => {
    const { problems, change } = await plan(hostOf('networkd'), {
      eth0: fixed('198.18.0.0', '198.18.0.1'),
      eth9: { type: 'dhcp' },
      eth1: { type: 'static' },
    })
    expect(change).toBeUndefined()
    expect(problems).toEqual([
      'eth1: ip is missing: the type static needs an address',
      'eth1: subnet is missing: the type static needs a mask, for example 255.255.255.0',
      expect.stringContaining('eth0: ip 198.18.0.0 is no address for a host'),
      expect.stringContaining('eth9: name eth9 is no link of this host'),
    ])
  })
})
