import { describe, expect, it } from 'vitest'
import { readDisks, type Statfs } from '../../src/host/disks.ts'
import { hostMounts, parseMountinfo, readMounts } from '../../src/host/mounts.ts'
import { machine } from '../fixtures/host/tree.ts'

const gib = 2 ** 30
/** 24 GiB, 9 used, 13 left to users, 2 reserved. */
const statfs: Statfs = async () => ({
  bsize: 4096,
  blocks: (24 * gib) / 4096,
  bfree: (15 * gib) / 4096,
  bavail: (13 * gib) / 4096,
})
const space = { totalSpace: 24, usedSpace: 9, freeSpace: 13 }

describe('disks of a rack server', () => {
  it('are each physical disk once, with bus, vendor, size and the file systems that live on it', async () => {
    const root = { fileSystemType: 'ext4', mountPoint: '/', ...space }
    expect(await readDisks(machine('rack-server'), statfs)).toEqual([
      {
        controller: 'SCSI',
        vendor: 'SEAGATE',
        size: 300,
        partitions: [{ fileSystemType: 'btrfs', mountPoint: '/srv/shop data', ...space }],
      },
      { controller: 'SATA', size: 3726, partitions: [] },
      {
        controller: 'NVME',
        vendor: 'Samsung',
        size: 894,
        partitions: [root, { fileSystemType: 'vfat', mountPoint: '/boot/efi', ...space }],
      },
      { controller: 'NVME', size: 894, partitions: [root] },
    ])
  })

  it('do not ask file systems that are on no disk, or on a pod', async () => {
    const asked: string[] = []
    await readDisks(machine('rack-server'), (path) => {
      asked.push(path)
      return statfs(path)
    })
    expect(asked).toEqual(['/', '/boot/efi', '/srv/shop data'])
  })
})

it('shows eMMC without its boot areas, and mounts by our own list where PID 1 shows none', async () => {
  expect(await readDisks(machine('single-board'), statfs)).toEqual([
    { controller: 'MMC', size: 29, partitions: [{ fileSystemType: 'ext4', mountPoint: '/', ...space }] },
  ])
})

it('shows no disk in a container on an overlay', async () => {
  expect(await readDisks(machine('container'), statfs)).toEqual([])
})

it('does not ask a FUSE file system how full it is', async () => {
  const files = machine(
    'single-board',
    '/proc/1/mountinfo <<\n25 1 179:2 / /media/stick rw - fuseblk /dev/mmcblk0p2 rw\n>>\n',
  )
  const [disk] = await readDisks(files, () => Promise.reject(new Error('asked')))
  expect(disk?.partitions).toEqual([{ fileSystemType: 'fuseblk', mountPoint: '/media/stick' }])
})

it('knows a virtio disk without calling its transport a vendor', async () => {
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
  expect(await readDisks(files, statfs)).toEqual([{ controller: 'VIRTIO', size: 256, partitions: [] }])
})

it('follows LVM on LUKS down to the disk', async () => {
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
  expect(await readDisks(files, statfs)).toEqual([
    {
      controller: 'USB',
      vendor: 'SanDisk',
      size: 119,
      partitions: [{ fileSystemType: 'xfs', mountPoint: '/', ...space }],
    },
  ])
})

describe('mounts', () => {
  it('unescapes octal digits', () => {
    const [mount] = parseMountinfo(
      '36 35 98:0 / /mnt/a\\040b\\011c\\134d rw master:1 - ext3 /dev/my\\040disk rw\n',
    )
    expect(mount).toMatchObject({ mountPoint: '/mnt/a b\tc\\d', source: '/dev/my disk', device: '98:0' })
  })

  it('leaves out what a later mount hides', () => {
    const text = '1 0 8:1 / /mnt rw - ext4 /dev/sda1 rw\n2 1 0:40 / /mnt rw - tmpfs tmpfs rw\n'
    expect(hostMounts(parseMountinfo(text)).map(({ fileSystemType }) => fileSystemType)).toEqual(['tmpfs'])
  })

  it('fail loudly when no list can be read', async () => {
    await expect(readMounts(machine(''))).rejects.toThrow('mountinfo')
  })
})
