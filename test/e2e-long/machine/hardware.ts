import { open } from 'node:fs/promises'
import { join } from 'node:path'

/** A network card and the name that systemd's predictable naming gives it by its slot. */
interface Card {
  readonly nicName: string
  readonly model: 'virtio-net-pci' | 'e1000e'
  readonly slot: number
  readonly macAddr: string
}

const card = (slot: number, model: Card['model']): Card => ({
  nicName: `enp0s${slot}`,
  model,
  slot,
  macAddr: `02:fc:00:00:00:${slot.toString(16).padStart(2, '0')}`,
})

/** The cards of a machine by what tests use them for. The test machine's port is forwarded to `uplink`. */
export const cards = {
  uplink: card(16, 'virtio-net-pci'),
  left: card(17, 'e1000e'),
  right: card(18, 'e1000e'),
  unplugged: card(19, 'virtio-net-pci'),
  six: card(20, 'virtio-net-pci'),
}

/** Address of the machine for QEMU's own router. */
export const uplink = { address: '10.0.2.15', length: 24, router: '10.0.2.2' }

/** Sizes in GiB: two of NVMe, two of SATA, one each of USB, SD card, SAS and hot-plugged SCSI. */
const disks = { nvme0: 3, nvme1: 3, sata0: 2, sata1: 2, usb: 2, sd: 1, sas: 2, extra: 4 }

export type DiskName = keyof typeof disks
export type CardName = keyof typeof cards

/**
 * Makes the disks, which are empty, and QEMU's arguments for all hardware except the root disk.
 * @param disc a file for the CD-ROM, whatever is in it
 */
export async function layHardware(folder: string, disc: string): Promise<string[]> {
  for (const [name, gib] of Object.entries(disks)) {
    const file = await open(diskFile(folder, name), 'w')
    await file.truncate(gib * 1_024 ** 3)
    await file.close()
  }
  const drive = (name: DiskName) =>
    `if=none,id=${name},format=raw,cache=unsafe,discard=unmap,file=${diskFile(folder, name)}`
  return [
    ...['-drive', drive('nvme0'), '-device', 'nvme,drive=nvme0,serial=nvme-0'],
    ...['-drive', drive('nvme1'), '-device', 'nvme,drive=nvme1,serial=nvme-1'],
    // The board's own AHCI has the buses ide.0 to ide.5.
    ...['-drive', drive('sata0'), '-device', 'ide-hd,bus=ide.0,drive=sata0,serial=sata-0'],
    ...['-drive', drive('sata1'), '-device', 'ide-hd,bus=ide.1,drive=sata1,serial=sata-1'],
    ...['-drive', `if=none,id=disc,format=raw,media=cdrom,readonly=on,file=${disc}`],
    ...['-device', 'ide-cd,bus=ide.2,drive=disc'],
    ...['-device', 'qemu-xhci', '-drive', drive('usb'), '-device', 'usb-storage,drive=usb,serial=usb-0'],
    ...['-device', 'sdhci-pci', '-drive', drive('sd'), '-device', 'sd-card,drive=sd'],
    ...['-device', 'mptsas1068,id=sas-bus', '-drive', drive('sas')],
    ...['-device', 'scsi-hd,bus=sas-bus.0,drive=sas,serial=sas-0,wwn=0x5000c50000000001'],
    // Empty until a test plugs in a disk.
    ...['-device', 'virtio-scsi-pci,id=scsi-bus'],
    ...['-device', 'VGA'],
    ...Object.entries(cards).flatMap(([name, { model, slot, macAddr }]) => [
      ...['-netdev', netdev(name)],
      ...[
        '-device',
        `${model},id=${name},netdev=net-${name},mac=${macAddr},bus=pcie.0,addr=0x${slot.toString(16)}`,
      ],
    ]),
  ]
}

export const diskFile = (folder: string, name: string) => join(folder, `${name}.disk`)

// In the network namespace of the QEMU process, where nothing else listens. The other cards are on a network without a host.
function netdev(name: string): string {
  if (name !== 'uplink') return `hubport,id=net-${name},hubid=1`
  return `user,id=net-uplink,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:5080-${uplink.address}:5080`
}
