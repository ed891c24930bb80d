import { integerOf, known, numberOf, part, rawList, rawOf, serialOf, textOf, type Raw } from './clean.ts'

// A machine without a name, on which Docker has been, or whose kernel speaks of a hypervisor.
const inventedModels: readonly unknown[] = ['Computer', 'Docker Container', 'Virtual machine']

/**
 * Maker, model, serial number, SKU and version of the whole machine, of systeminformation's `system()`.
 * @param productName of the kernel, for a machine that the library calls after something else, or not at all
 */
export const systemOf = (
  { manufacturer, model, version, serial, sku }: Raw,
  productName: string | undefined,
) =>
  part('system', {
    manufacturer: textOf(manufacturer),
    model: (inventedModels.includes(model) ? undefined : textOf(model)) ?? textOf(productName),
    version: textOf(version),
    serial: serialOf(serial),
    sku: textOf(sku),
  })

/** The mainboard, of `baseboard()`; its memory figures are of the first array alone, and wrong above 1023 GB. */
export const boardOf = ({ manufacturer, model, version, serial, assetTag }: Raw) =>
  part('board', {
    manufacturer: textOf(manufacturer),
    model: textOf(model),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/** The case, of `chassis()`. */
export const chassisOf = ({ manufacturer, type, version, serial, assetTag }: Raw) =>
  part('chassis', {
    manufacturer: textOf(manufacturer),
    type: type === 'Other' ? undefined : textOf(type),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/**
 * The firmware, of `bios()`, which takes month and day for each other.
 * @param date of the kernel's `bios_date`: mm/dd/yyyy, SMBIOS 3.7, 7.1
 */
export function biosOf({ vendor, version }: Raw, date: string | undefined) {
  const [, month, day, year] = /^\s*(\d\d)\/(\d\d)\/(\d{4})\s*$/.exec(date ?? '') ?? []
  return part('bios', {
    vendor: textOf(vendor),
    version: textOf(version),
    releaseDate: year === undefined ? undefined : `${year}-${month}-${day}`,
  })
}

/** Slots and modules, of `memLayout()`. */
export function memoryOf(list: unknown) {
  // Where dmidecode knows of no slot it makes one module of all memory, and that has no manufacturer, not even an empty one.
  const slots = rawList(list, 1_024).filter((slot) => Object.hasOwn(slot, 'manufacturer'))
  if (slots.length === 0) return {}
  const modules = slots
    .filter(({ size }) => numberOf(size) !== undefined)
    .map((slot) =>
      known({
        bank: textOf(slot.bank),
        sizeBytes: integerOf(slot.size),
        type: textOf(slot.type),
        formFactor: textOf(slot.formFactor),
        manufacturer: textOf(slot.manufacturer),
        partNumber: textOf(slot.partNum),
        serial: serialOf(slot.serialNum),
        speedMTps: integerOf(slot.clockSpeed),
        voltage: numberOf(slot.voltageConfigured),
      }),
    )
  return { memory: { slots: slots.length, modules } }
}

/** The devices on USB, of `usb()`. */
export const usbOf = (list: unknown) =>
  rawList(list, 256).map((device) =>
    known({
      bus: integerOf(device.bus),
      device: integerOf(device.deviceId),
      id: /^[0-9a-f]{4}:[0-9a-f]{4}$/.test(String(device.id)) ? String(device.id) : undefined,
      name: textOf(device.name),
      vendor: textOf(device.vendor),
      manufacturer: textOf(device.manufacturer),
      serial: serialOf(device.serialNumber),
      type: textOf(device.type),
    }),
  )

/** The battery, of `battery()`; of its capacities one is an OR of two others (5.33), so none is taken. */
export const batteryOf = (battery: Raw) =>
  battery.hasBattery !== true
    ? {}
    : part('battery', {
        manufacturer: textOf(battery.manufacturer),
        model: textOf(battery.model),
        serial: serialOf(battery.serial),
        type: textOf(battery.type),
        cycles: integerOf(battery.cycleCount),
        percent: numberOf(battery.percent),
      })

/** Temperatures in °C, of `cpuTemperature()`. */
export const temperatureOf = ({ main, max, chipset }: Raw) =>
  part('temperature', {
    processorCelsius: numberOf(main),
    hottestCelsius: numberOf(max),
    chipsetCelsius: numberOf(chipset),
  })

/** The display controllers, of `graphics()`. */
export function graphicsOf(value: unknown) {
  return rawList(rawOf(value).controllers, 64).flatMap((controller) => {
    const address = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i.exec(
      String(controller.busAddress),
    )
    if (!address) return []
    return [
      {
        address: `${address[1] ?? '0000'}:${address[2]}`.toLowerCase(),
        ...known({
          vendor: textOf(controller.vendor),
          model: textOf(controller.name) ?? textOf(controller.model),
          // Its vram is the size of a window into the memory; this NVIDIA's driver says.
          memoryMiB: integerOf(controller.memoryTotal),
          driverVersion: textOf(controller.driverVersion),
        }),
      },
    ]
  })
}
