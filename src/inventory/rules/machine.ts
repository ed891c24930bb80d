import {
  celsiusOf,
  integerOf,
  known,
  numberOf,
  part,
  rawList,
  rawOf,
  serialOf,
  textOf,
  type Raw,
} from './clean.ts'

// Models that systeminformation makes up: for a machine without a name, with Docker files, or with a hypervisor's kernel messages.
const inventedModels: readonly unknown[] = ['Computer', 'Docker Container', 'Virtual machine']

/**
 * Maker, model, serial number, SKU and version of the whole machine, from systeminformation's `system()`.
 * @param productName the kernel's name of the product, for a machine without a model or with a made-up one
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

/** The mainboard, from `baseboard()`; its memory figures are not used: they cover the first array only, and are wrong above 1023 GB. */
export const boardOf = ({ manufacturer, model, version, serial, assetTag }: Raw) =>
  part('board', {
    manufacturer: textOf(manufacturer),
    model: textOf(model),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/** The chassis, from `chassis()`. */
export const chassisOf = ({ manufacturer, type, version, serial, assetTag }: Raw) =>
  part('chassis', {
    manufacturer: textOf(manufacturer),
    type: type === 'Other' ? undefined : textOf(type),
    version: textOf(version),
    serial: serialOf(serial),
    assetTag: textOf(assetTag),
  })

/**
 * The firmware, from `bios()`. The library swaps month and day, so the date comes from the kernel.
 * @param date the kernel's `bios_date`: mm/dd/yyyy, SMBIOS 3.7, 7.1
 */
export function biosOf({ vendor, version }: Raw, date: string | undefined) {
  const [, month, day, year] = /^\s*(\d\d)\/(\d\d)\/(\d{4})\s*$/.exec(date ?? '') ?? []
  return part('bios', {
    vendor: textOf(vendor),
    version: textOf(version),
    releaseDate: year === undefined ? undefined : `${year}-${month}-${day}`,
  })
}

/** Slots and modules, from `memLayout()`. */
export function memoryOf(list: unknown) {
  // Where dmidecode lists no slot, the library makes up one module of all memory; it is the only one without the field manufacturer.
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

/** The USB devices, from `usb()`. */
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

/** The battery, from `battery()`, without its capacities: one of them is computed as an OR of two others (5.33). */
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

/** Temperatures in °C, from `cpuTemperature()`. */
export const temperatureOf = ({ main, max, chipset }: Raw) =>
  part('temperature', {
    processorCelsius: celsiusOf(main),
    hottestCelsius: celsiusOf(max),
    chipsetCelsius: celsiusOf(chipset),
  })

/** The display controllers, from `graphics()`. */
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
          // memoryTotal is reported by NVIDIA's driver. vram is not used: it is only the size of a window into the memory.
          memoryMiB: integerOf(controller.memoryTotal),
          driverVersion: textOf(controller.driverVersion),
        }),
      },
    ]
  })
}
