import { describe, expect, it } from 'vitest'
import type { HostFiles } from '../../../src/host/files.ts'
import { readDisks } from '../../../src/host/storage/disks.ts'
import { hostMounts, readMounts } from '../../../src/host/storage/mounts.ts'
import { parseMountinfo } from '../../../src/system/mountinfo.ts'
import { machine } from '../../fixtures/host/tree.ts'

const disksOf = async (files: HostFiles) => readDisks(files, await readMounts(files))

describe('disks of a rack server', () => {
  it('each physical disk is listed once, with bus, vendor, size and its file systems', async () => {
    const root = { fileSystemType: 'ext4', mountPoint: '/' }
    expect(await disksOf(machine('rack-server'))).toEqual([
      {
        name: 'sda',
        controller: 'SCSI',
        vendor: 'SEAGATE',
        size: 300,
        fileSystems: [{ fileSystemType: 'btrfs', mountPoint: '/srv/shop data' }],
      },
      { name: 'sdb', controller: 'SATA', size: 3726, fileSystems: [] },
      {
        name: 'nvme0n1',
        controller: 'NVME',
        vendor: 'Samsung',
        size: 894,
        fileSystems: [root, { fileSystemType: 'vfat', mountPoint: '/boot/efi' }],
      },
      { name: 'nvme1n1', controller: 'NVME', size: 894, fileSystems: [root] },
    ])
  })
})

it('eMMC is shown without its boot areas, and mounts come from /proc/self where PID 1 shows none', async () => {
  expect(await disksOf(machine('single-board'))).toEqual([
    {
      name: 'mmcblk0',
      controller: 'MMC',
      size: 29,
      fileSystems: [{ fileSystemType: 'ext4', mountPoint: '/' }],
    },
  ])
})

it('a container on an overlay has no disks', async () => {
  expect(await disksOf(machine('container'))).toEqual([])
})

it('a disk with two paths is shown once, with its mounted file systems', async () => {
  const port = (host: number) =>
    `/sys/devices/pci0000:00/0000:00:0${host}.0/host${host}/target${host}:0:0/${host}:0:0:0`
  const path = (host: number, name: string) => `
/sys/block/${name} -> ..${port(host).slice('/sys'.length)}/block/${name}
${port(host)}/block/${name}/size = 2097152000
${port(host)}/block/${name}/device -> ../../../${host}:0:0:0
${port(host)}/block/${name}/holders/dm-0 -> ../../../../../../../../virtual/block/dm-0
${port(host)}/subsystem -> ../../../../../../bus/scsi
${port(host)}/vendor = NETAPP
/sys/devices/virtual/block/dm-0/slaves/${name} -> ../../../..${port(host).slice('/sys/devices'.length)}/block/${name}
`
  const files = machine(
    '',
    `${path(1, 'sda')}${path(2, 'sdb')}
/sys/block/dm-0 -> ../devices/virtual/block/dm-0
/sys/devices/virtual/block/dm-0/dm/uuid = mpath-3600a098038304437415d4b6a59682f52
/sys/dev/block/253:0 -> ../../devices/virtual/block/dm-0
/proc/1/mountinfo <<
25 1 253:0 / /srv rw,relatime - xfs /dev/mapper/mpatha rw
>>
`,
  )
  expect(await disksOf(files)).toEqual([
    {
      name: 'sda',
      controller: 'SCSI',
      vendor: 'NETAPP',
      size: 1000,
      fileSystems: [{ fileSystemType: 'xfs', mountPoint: '/srv' }],
    },
  ])
})

it('a virtio disk is shown without the vendor of its transport', async () => {
  const disk = '/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda'
  const files = machine(
    'container',
    `/sys/block/vda -> ../devices/pci0000:00/0000:00:02.0/virtio1/block/vda
${disk}/size = 536870912
${disk}/device -> ../../../virtio1
/sys/devices/pci0000:00/0000:00:02.0/virtio1/vendor = 0x1af4
/sys/devices/pci0000:00/0000:00:02.0/virtio1/subsystem -> ../../../../bus/virtio
`,
  )
  expect(await disksOf(files)).toEqual([{ name: 'vda', controller: 'VIRTIO', size: 256, fileSystems: [] }])
})

it('LVM on LUKS is followed down to the disk', async () => {
  const usb = '/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host1/target1:0:0/1:0:0:0'
  const files = machine(
    '',
    `/sys/block/sda -> ../${usb.slice('/sys/'.length)}/block/sda
${usb}/block/sda/size = 250069680
${usb}/block/sda/device -> ../../../1:0:0:0
${usb}/vendor = SanDisk 
${usb}/block/sda/sda3/partition = 3
/sys/devices/virtual/block/dm-0/slaves/sda3 -> ../../../../${usb.slice('/sys/devices/'.length)}/block/sda/sda3
/sys/devices/virtual/block/dm-1/slaves/dm-0 -> ../../dm-0
/sys/dev/block/253:1 -> ../../devices/virtual/block/dm-1
/proc/1/mountinfo <<
25 1 253:1 / / rw,relatime - xfs /dev/mapper/vg-root rw
>>
`,
  )
  expect(await disksOf(files)).toEqual([
    {
      name: 'sda',
      controller: 'USB',
      vendor: 'SanDisk',
      size: 119,
      fileSystems: [{ fileSystemType: 'xfs', mountPoint: '/' }],
    },
  ])
})

describe('mounts', () => {
  it('a mount point with octal escapes is unescaped', () => {
    const [mount] = parseMountinfo(
      '36 35 98:0 / /mnt/a\\040b\\011c\\134d rw master:1 - ext3 /dev/my\\040disk rw\n',
    )
    expect(mount).toMatchObject({ mountPoint: '/mnt/a b\tc\\d', source: '/dev/my disk', device: '98:0' })
  })

  it('mountinfo lines without optional fields, with several, and with an empty source are parsed', () => {
    const text = [
      '21 22 0:20 / /proc rw,nosuid - proc proc rw',
      '22 1 8:1 / / rw shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 rw,errors=remount-ro',
      '23 22 0:45 /a\\040b /srv rw - btrfs  rw,subvol=/a\\040b',
      '',
    ].join('\n')
    expect(parseMountinfo(text)).toMatchObject([
      { mountPoint: '/proc', fileSystemType: 'proc', source: 'proc', options: 'rw' },
      { mountPoint: '/', fileSystemType: 'ext4', source: '/dev/sda1', options: 'rw,errors=remount-ro' },
      { mountPoint: '/srv', root: '/a b', source: '' },
    ])
    expect(hostMounts(parseMountinfo(text)).map(({ mountPoint }) => mountPoint)).toEqual([
      '/',
      '/proc',
      '/srv',
    ])
  })

  it('a mount that a later one hides is left out', () => {
    const text = '1 0 8:1 / /mnt rw - ext4 /dev/sda1 rw\n2 1 0:40 / /mnt rw - tmpfs tmpfs rw\n'
    expect(hostMounts(parseMountinfo(text)).map(({ fileSystemType }) => fileSystemType)).toEqual(['tmpfs'])
    const below =
      '1 1 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /srv/a rw - xfs b rw\n3 1 8:3 / /srv rw - ext4 c rw\n'
    expect(hostMounts(parseMountinfo(below)).map(({ mountPoint }) => mountPoint)).toEqual(['/', '/srv'])
  })

  it('mounts are an error where no mountinfo can be read', async () => {
    await expect(readMounts(machine(''))).rejects.toThrow('mountinfo')
  })
})
