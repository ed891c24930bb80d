import { describe, expect, it } from 'vitest'
import {
  readDiskVendor,
  usableVendor,
  vendorOfModel,
  type Controller,
} from '../../../src/host/storage/disks.ts'
import { machine } from '../../fixtures/host/tree.ts'

const disk = '/sys/devices/pci0000:00/host0/block/sda'
const attributes = (values: Readonly<Record<string, string>>) =>
  machine(
    '',
    Object.entries(values)
      .map(([name, value]) => `${disk}/device/${name} = ${value}\n`)
      .join(''),
  )

describe('an ATA model', () => {
  it.each([
    ['Samsung SSD 870 ', 'Samsung'],
    ['WDC WD40EFRX-68N', 'WDC'],
    ['INTEL SSDSC2BB48', 'INTEL'],
    ['Micron_5300_MTFD', 'Micron'],
    ['T-FORCE 1TB', 'T-FORCE'],
  ])('the ATA model %j names %s', (model, vendor) => {
    expect(vendorOfModel(model)).toBe(vendor)
  })

  it.each([
    ...['ST4000NM0033', 'ST4000NM0033-9ZM', 'TS256GSSD370S', 'CT500MX500SSD1', 'OCZ-VERTEX4', ''],
    ...['SSD 128GB', 'SATA SSD', 'M.2 SSD', '2.5" SSD', 'Solid State Disk', 'SATADOM-SL 3ME', 'HDD 1', 'X 9'],
  ])('the ATA model %j names no maker', (model) => {
    expect(vendorOfModel(model)).toBeUndefined()
  })
})

describe('an INQUIRY vendor', () => {
  it.each([
    ['SEAGATE ', 'SEAGATE'],
    ['IBM-ESXS', 'IBM-ESXS'],
    ['3PARdata', '3PARdata'],
    ['QEMU    ', 'QEMU'],
  ])('the INQUIRY vendor %j is %s', (field, vendor) => {
    expect(usableVendor(field)).toBe(vendor)
  })

  it.each(['        ', 'Generic ', 'Generic-', 'USB 3.0 ', 'NVMe    ', 'Mass    ', '------'])(
    'the INQUIRY vendor %j is refused',
    (junk) => {
      expect(usableVendor(junk)).toBeUndefined()
    },
  )
})

describe('the vendor of a disk', () => {
  it.each<[Controller, Readonly<Record<string, string>>, string | undefined]>([
    ['SCSI', { vendor: 'SEAGATE ', model: 'ST300MM0048     ' }, 'SEAGATE'],
    ['SCSI', { vendor: 'ATA     ', model: 'Samsung SSD 870 ' }, 'Samsung'],
    ['USB', { vendor: 'SanDisk ', model: 'Ultra           ' }, 'SanDisk'],
    ['USB', { vendor: 'Generic ', model: 'Flash Disk      ' }, undefined],
    ['SATA', { vendor: 'ATA     ', model: 'TOSHIBA MG04ACA4' }, 'TOSHIBA'],
    ['SATA', { vendor: 'ATA     ', model: 'ST4000NM0033-9ZM' }, undefined],
    ['MMC', { type: 'MMC', manfid: '0x000015' }, 'Samsung'],
    ['MMC', { type: 'SD', manfid: '0x000003' }, 'SanDisk'],
    ['MMC', { type: 'MMC', manfid: '0x000003' }, undefined],
    ['MMC', { type: 'SD', manfid: '0x000015' }, undefined],
    ['MMC', { type: 'SD' }, undefined],
    ['VIRTIO', { vendor: '0x1af4' }, undefined],
  ])('the vendor of a disk on %s with %j is %s', async (controller, values, vendor) => {
    expect(await readDiskVendor(attributes(values), disk, controller)).toBe(vendor)
  })

  it('the vendor of a disk on an unknown bus is unknown', async () => {
    expect(await readDiskVendor(attributes({ vendor: 'ACME' }), disk, undefined)).toBeUndefined()
  })

  const nvme = '/sys/devices/pci0000:00/0000:02:00.0'
  const controller = (id: string) => `${nvme}/vendor = ${id}
${nvme}/nvme/nvme0/device -> ../../../0000:02:00.0
${nvme}/nvme/nvme0/nvme0n1/device -> ../../nvme0
/run/udev/data/+pci:0000:02:00.0 <<
E:ID_VENDOR_FROM_DATABASE=Shenzhen Longsys Electronics Co., Ltd.
>>
`
  it('the vendor of an NVMe disk is that of its PCI vendor id, otherwise that in udev', async () => {
    const path = `${nvme}/nvme/nvme0/nvme0n1`
    expect(await readDiskVendor(machine('', controller('0x144d')), path, 'NVME')).toBe('Samsung')
    expect(await readDiskVendor(machine('', controller('0x1d97')), path, 'NVME')).toBe(
      'Shenzhen Longsys Electronics Co., Ltd.',
    )
  })

  it('the vendor of an NVMe disk with several paths is that of the first path', async () => {
    const subsystem = '/sys/devices/virtual/nvme-subsystem/nvme-subsys0'
    const files = machine(
      '',
      `${controller('0x144d')}
${subsystem}/nvme0 -> ../../../pci0000:00/0000:02:00.0/nvme/nvme0
${subsystem}/nvme0n1/device -> ../../nvme-subsys0
`,
    )
    expect(await readDiskVendor(files, `${subsystem}/nvme0n1`, 'NVME')).toBe('Samsung')
  })

  it('the vendor of an NVMe disk over a network is unknown', async () => {
    const path = '/sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1'
    expect(await readDiskVendor(machine('', `${path}/device -> ../../nvme1\n`), path, 'NVME')).toBeUndefined()
  })
})
