import { toGiB } from '../../host/machine.ts'
import type { HostHardware } from '../../host/facts.ts'
import type { Supplement } from '../../host/fact.ts'
import type { Hardware } from '../schemas.ts'

/** The inventory as a source for values that the facts of the host do not have. */
export function supplementOf(current: () => Hardware | undefined): Supplement {
  return {
    diskVendor: (name, size) =>
      current()?.disks.find((disk) => disk.name === name && toGiB(disk.sizeBytes ?? 0) === size)?.vendor,
    display: (address) => current()?.graphics.find((each) => each.address === address),
  }
}

/**
 * Makes the inventory agree with the facts of the host, which are newer and may have a better source: the maker of a disk,
 * and maker, model and memory of a display controller, come from `edgehosts/current`.
 */
export function agree(hardware: Hardware, { disks, displays }: HostHardware): Hardware {
  const vendors = new Map(disks.map(({ name, vendor }) => [name, vendor]))
  const controllers = new Map(displays.map((display) => [display.address, display]))
  return {
    ...hardware,
    disks: hardware.disks.map((disk) => {
      const vendor = vendors.get(disk.name) ?? disk.vendor
      return vendor === undefined ? disk : { ...disk, vendor }
    }),
    graphics: hardware.graphics.map((each) => {
      const { vendor, model, memoryMiB } = controllers.get(each.address) ?? {}
      return {
        ...each,
        ...(vendor === undefined ? {} : { vendor }),
        ...(model === undefined ? {} : { model }),
        ...(memoryMiB === undefined ? {} : { memoryMiB }),
      }
    }),
  }
}
