import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import type { Inventory } from '../../src/inventory/schemas.ts'
import { unlimited } from '../e2e/host/edgehostd.ts'
import { eventually } from '../e2e/host/eventually.ts'
import { network, storage } from './machine/furnishing.ts'
import { cards } from './machine/hardware.ts'
import { startEdgehostd, type MachineHost } from './machine/machine-host.ts'
import { canEmulate } from './machine/machine.ts'
import { inventoryByTools } from './machine/inventory-tools.ts'
import { disksOf, nicsOf, serversOf } from './machine/tools.ts'

const right = 'right canary 1101'
const path = '/v1/edge-mgmt/edgehosts/current'
/** How late a change may be seen without `refresh`: twice the ten seconds that other tests hold, since the machine is emulated. */
const boundMs = 20_000

let host: MachineHost
let token: string
let seen: EdgeHostInfo

/** The reply of the daemon; with `fresh` the facts are read again first. */
async function facts(fresh: boolean): Promise<EdgeHostInfo> {
  const reply = await host.http('GET', fresh ? `${path}?refresh=true` : path, { token })
  // Another address makes another certificate.
  if (reply.failure.includes('certificate')) await host.trust()
  expect(reply, reply.failure).toMatchObject({ status: 200 })
  return reply.json as EdgeHostInfo
}

const nic = (info: EdgeHostInfo, name: string) =>
  info.spec.networkInfo.find(({ nicName }) => nicName === name)

const mountPoints = (info: EdgeHostInfo) =>
  info.spec.hardwareSpec.disks.flatMap(({ partitions }) => partitions.map(({ mountPoint }) => mountPoint))

/** The mount points under each disk of a bus. */
const under = (controller: string) =>
  seen.spec.hardwareSpec.disks
    .filter((disk) => disk.controller === controller)
    .map(({ partitions }) => partitions.map(({ mountPoint }) => mountPoint))

/** Waits until a reply without `refresh` shows a change, no longer than the bound. */
async function follows(check: (info: EdgeHostInfo) => void): Promise<void> {
  await eventually(async () => check(await facts(false)), boundMs)
}

// The emulated machine is a PC: elsewhere there is nothing to test with.
describe.skipIf(!canEmulate)('on a machine of its own', () => {
  beforeAll(async () => {
    host = await startEdgehostd()
    await host.configure('requests', unlimited)
    await host.sh(storage)
    await host.sh(network)
    await host.setCarrier('unplugged', false)
    await host.addUser({ name: 'anna', password: right })
    // Its certificate names the addresses that it has been given once it is asked to, or after an hour.
    token = await eventually(async () => {
      await host.sh('systemctl reload edgehostd')
      await host.trust()
      return (await host.openSession('anna', right)).token
    }, 60_000)
    seen = await eventually(() => facts(true), 60_000)
  }, 600_000)
  afterAll(() => host.unplug())

  describe('the disks of the reply', () => {
    it('the disks are those of lsblk, findmnt and df, each once, with its file systems', async () => {
      // A file system in use is read twice: a number may change meanwhile.
      await eventually(async () => {
        const { disks } = (await facts(true)).spec.hardwareSpec
        const shown = disks.map(({ controller, size, partitions }) => ({ controller, size, partitions }))
        expect(sorted(shown)).toEqual(sorted(await disksOf(host)))
      }, 60_000)
    })

    it('the disks are those of every bus, without the CD-ROM and the loops', () => {
      const buses = seen.spec.hardwareSpec.disks.map(({ controller }) => controller).sort()
      expect(buses).toEqual(['MMC', 'NVME', 'NVME', 'SATA', 'SATA', 'SCSI', 'USB', 'VIRTIO'])
    })

    it('a mirror is shown under both of its disks', () => {
      expect(under('NVME')).toEqual([['/srv/raid'], ['/srv/raid']])
    })

    it('a volume on two disks is shown under both, and one on a single disk under that disk', () => {
      expect(under('SATA').sort()).toEqual([['/srv/data'], ['/srv/data', '/srv/lone']])
    })

    it('an encrypted volume is shown under its disk', () => {
      expect(under('USB')).toEqual([['/srv/secret']])
    })

    it('a partition and a whole disk are shown', () => {
      expect(under('MMC')).toEqual([['/srv/sd']])
      expect(under('SCSI')).toEqual([['/srv/sas']])
    })

    it('no tmpfs, bind mount, overlay, squashfs, loop or volume of a pod is shown', () => {
      expect([...new Set(mountPoints(seen))].sort()).toEqual(
        ['/', '/srv/data', '/srv/lone', '/srv/raid', '/srv/sas', '/srv/sd', '/srv/secret'].sort(),
      )
    })
  })

  describe('the network of the reply', () => {
    it('cards, bonds, bridges and VLANs are those of ip', async () => {
      const shown = seen.spec.networkInfo.map((each) => without(each, 'dns'))
      expect(sorted(shown)).toEqual(sorted(await nicsOf(host)))
    })

    it('the network has the cards, the bond, the VLAN, the bridge and a dummy with an address, and no interfaces of pods', () => {
      const names = seen.spec.networkInfo.map(({ nicName }) => nicName).sort()
      const composed = ['bond0', 'bond0.20', 'br0', 'spare0']
      expect(names).toEqual([...Object.values(cards).map(({ nicName }) => nicName), ...composed].sort())
    })

    it('the network has one default, the route with the lowest metric, and the gateways of the others', () => {
      const defaults = seen.spec.networkInfo.filter(({ isDefault }) => isDefault)
      expect(defaults.map(({ nicName, gateway }) => ({ nicName, gateway }))).toEqual([
        { nicName: 'bond0', gateway: '192.0.2.254' },
      ])
      expect(nic(seen, cards.uplink.nicName)).toMatchObject({ gateway: '10.0.2.2', isDefault: false })
    })

    it('of several addresses the primary one is shown', () => {
      expect(nic(seen, cards.uplink.nicName)).toMatchObject({ ip: '10.0.2.15', subnet: '255.255.255.0' })
    })

    it('the address of a card without carrier is shown', () => {
      expect(nic(seen, cards.unplugged.nicName)).toMatchObject({
        ip: '192.168.77.5',
        subnet: '255.255.252.0',
      })
    })

    it('an IPv6-only interface is shown with its own gateway', () => {
      expect(nic(seen, cards.six.nicName)).toMatchObject({
        ip: '2001:db8:6::5',
        subnet: '64',
        gateway: '2001:db8:6::1',
        isDefault: false,
      })
    })

    it('the name servers of links are those of resolvectl', async () => {
      const shown = seen.spec.networkInfo.map(({ nicName, dns }) => ({ nicName, dns }))
      expect(sorted(shown)).toEqual(sorted(await serversOf(host, shown)))
    })
  })

  describe('the rest of the reply', () => {
    it('the display adapter is shown with its address', async () => {
      const classes = await host.sh('grep -l ^0x03 /sys/bus/pci/devices/*/class')
      const addresses = classes
        .trim()
        .split('\n')
        .map((file) => file.split('/')[5]!.replace(/[:.]/g, '_'))
      expect(seen.spec.hardwareSpec.gpus.flatMap((gpu) => Object.values(gpu.addresses))).toEqual(addresses)
    })

    it('the id is that of the board', async () => {
      const uuid = (await host.read('/sys/class/dmi/id/product_uuid')).trim()
      expect(seen.metadata.id.toLowerCase()).toContain(uuid.replaceAll('-', '').toLowerCase().slice(0, 8))
    })

    it('the time server is that of chrony', async () => {
      const [line] = (await host.output(['chronyc', '-c', '-n', 'sources'])).trim().split('\n')
      expect(seen.status.ntp.ntpServers).toEqual([line!.split(',')[2]])
    })

    it('the reply has no condition', () => {
      expect(seen.status.conditions ?? []).toEqual([])
    })
  })

  describe('the inventory', () => {
    let inventory: Inventory
    const read = async () => {
      const reply = await host.http('GET', `${path}/inventory`, { token })
      expect(reply, reply.failure).toMatchObject({ status: 200 })
      return reply.json as Inventory
    }
    beforeAll(async () => {
      await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
      token = (await host.openSession('chief', right)).token
      // Emulated, a reading takes longer than a client waits, and now and then a call longer than its 10 s.
      inventory = await eventually(async () => {
        await host.output(['edgehostctl', 'host', 'inventory', '--refresh', '-o', 'json'], {
          timeoutMs: 300_000,
        })
        const answer = await read()
        expect(answer.conditions ?? []).toEqual([])
        return answer
      }, 300_000)
    }, 650_000)

    it('the inventory agrees with dmidecode, lscpu, lsblk, ethtool, lspci and lsusb', async () => {
      const truth = await inventoryByTools(host)
      const { system, bios, chassis, processor, memory, usb, graphics } = inventory
      expect({ system, bios, chassis, memory, usb, graphics }).toMatchObject(truth.board)
      expect(processor).toMatchObject(truth.processor)
      expect(
        sorted(
          inventory.disks.map(({ name, model, serial, sizeBytes }) => ({ name, model, serial, sizeBytes })),
        ),
      ).toEqual(sorted(truth.disks))
      expect(
        sorted(
          inventory.nics.map(({ name, macAddr, driver, speedMbps, duplex }) => ({
            name,
            macAddr,
            driver,
            speedMbps,
            duplex,
          })),
        ),
      ).toEqual(sorted(truth.nics))
    })

    it('inventory and facts name the same makers and models', async () => {
      const { disks, gpus } = (await facts(true)).spec.hardwareSpec
      expect(sorted(disks.map(({ controller, vendor }) => ({ controller, vendor })))).toEqual(
        sorted(inventory.disks.map(({ controller, vendor }) => ({ controller, vendor }))),
      )
      const shown = gpus.flatMap(({ addresses, vendor, model }) =>
        Object.values(addresses).map((address) => ({ address, vendor, model })),
      )
      expect(
        inventory.graphics.map(({ address, vendor, model }) => ({
          address: address.replace(/[:.]/g, '_'),
          vendor,
          model,
        })),
      ).toEqual(shown)
    })

    it('the inventory is read again a minute after a disk was plugged in', async () => {
      const before = inventory.readTimestamp
      await host.plug('extra')
      await eventually(async () => {
        const { readTimestamp, disks } = await read()
        expect(disks.map(({ serial }) => serial)).toContain('extra')
        expect(Date.parse(readTimestamp)).toBeGreaterThan(Date.parse(before))
      }, 240_000)
      await host.pull('extra')
    })
  })

  describe('a reply without refresh', () => {
    it('the reply follows an address that is added', async () => {
      await host.output(['ip', 'address', 'add', '192.168.88.1/30', 'dev', cards.right.nicName])
      await follows((info) =>
        expect(nic(info, cards.right.nicName)).toMatchObject({
          ip: '192.168.88.1',
          subnet: '255.255.255.252',
        }),
      )
    })

    it('the reply follows a VLAN that is removed', async () => {
      await host.output(['ip', 'link', 'del', 'bond0.20'])
      await follows((info) => expect(nic(info, 'bond0.20')).toBeUndefined())
    })

    it('the reply follows the default route to another card', async () => {
      await host.output(['ip', 'route', 'del', 'default', 'metric', '50'])
      await follows((info) => {
        expect(nic(info, cards.uplink.nicName)).toMatchObject({ isDefault: true })
        expect(nic(info, 'bond0')).toMatchObject({ isDefault: false })
      })
    })

    it('the reply follows a file system that is unmounted', async () => {
      await host.output(['umount', '/srv/sd'])
      await follows((info) => expect(mountPoints(info)).not.toContain('/srv/sd'))
    })

    it('a file system that hangs is named in a condition, and the other facts stay fresh', async () => {
      // mount(2) by its number, since Perl's base does not name it, of FUSE on a disk; no process answers the kernel.
      const script = `open(F, "+<", "/dev/fuse") or die "$!";
        my $options = "fd=" . fileno(F) . ",rootmode=40000,user_id=0,group_id=0,blksize=512";
        syscall(165, my $a = "/dev/disk/by-id/wwn-0x5000c50000000001", my $b = "/srv/hung", my $c = "fuseblk", 0, $options) == 0 or die "$!";
        sleep`
      await host.sh('modprobe fuse; umount /srv/sas; mkdir /srv/hung')
      await host.output(['systemd-run', '--unit', 'hung', 'perl', '-e', script])
      // The program or the wait for it is given up first: both have the same time.
      const message = expect.stringMatching(/^\/srv\/hung: .*\b5000 ms/) as string
      const hung = await eventually(async () => {
        const info = await facts(false)
        expect(info.status.conditions).toMatchObject([{ type: 'space', message }])
        return info
      }, 30_000)
      const partition = hung.spec.hardwareSpec.disks
        .flatMap(({ partitions }) => partitions)
        .find(({ mountPoint }) => mountPoint === '/srv/hung')
      expect(partition).toEqual({ fileSystemType: 'fuseblk', mountPoint: '/srv/hung' })
      await host.output(['ip', 'address', 'add', '192.168.89.1/30', 'dev', cards.right.nicName])
      await host.output(['ip', 'address', 'del', '192.168.88.1/30', 'dev', cards.right.nicName])
      await follows((info) => expect(nic(info, cards.right.nicName)).toMatchObject({ ip: '192.168.89.1' }))
      // Nothing piles up behind it.
      await eventually(async () =>
        expect((await host.sh('cat /proc/[0-9]*/comm 2> /dev/null | grep -cx stat || true')).trim()).toBe(
          '0',
        ),
      )
      await host.sh('systemctl stop hung; umount --lazy /srv/hung || true')
      await follows((info) => expect(info.status.conditions).toBeUndefined())
    })

    it('the reply follows a disk that is plugged in and pulled out', async () => {
      const sizes = (info: EdgeHostInfo) =>
        info.spec.hardwareSpec.disks
          .filter(({ controller }) => controller === 'SCSI')
          .map(({ size }) => size)
          .sort()
      await host.plug('extra')
      await follows((info) => expect(sizes(info)).toEqual([2, 4]))
      await host.pull('extra')
      await follows((info) => expect(sizes(info)).toEqual([2]))
    })
  })
})

function sorted<T>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (inOrder(a) < inOrder(b) ? -1 : 1))
}

function without<T extends object, K extends keyof T>(object: T, key: K): Omit<T, K> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key)) as Omit<T, K>
}

/** A text to sort by, whatever order properties come in. */
const inOrder = (value: unknown) =>
  typeof value === 'object' && value !== null
    ? JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : JSON.stringify(value)
