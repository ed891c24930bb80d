import { Type, type Static, type TProperties } from 'typebox'

// A field that the machine does not report, or fills with a placeholder, is absent. Texts are printable, of at most 256 characters.

const text = (description?: string) =>
  Type.Optional(Type.String({ maxLength: 256, ...(description ? { description } : {}) }))
const count = (description: string) => Type.Optional(Type.Integer({ minimum: 1, description }))
const amount = (description: string) => Type.Optional(Type.Number({ description }))
const part = <T extends TProperties>(properties: T) => Type.Optional(Type.Object(properties))

const Smart = Type.Object({
  state: Type.Union(
    [Type.Literal('passed'), Type.Literal('failed'), Type.Literal('standby'), Type.Literal('unknown')],
    {
      description:
        'Health that the disk reports; standby: the disk sleeps and was not woken; unknown: it reports values but no result.',
    },
  ),
  temperatureCelsius: amount('Temperature of the disk.'),
  powerOnHours: count('Hours that the disk has been on.'),
  usedPercent: amount('Used part of the lifetime that its maker specifies; may be over 100.'),
})

/** A disk of the inventory. */
export const InventoryDisk = Type.Object({
  name: Type.String({ description: "The kernel's name, for example sda." }),
  controller: text('As in the hardwareSpec of edgehosts/current.'),
  kind: Type.Optional(Type.Union([Type.Literal('HDD'), Type.Literal('SSD')])),
  vendor: text('As in the hardwareSpec of edgehosts/current.'),
  model: text(),
  serial: text(),
  firmware: text(),
  sizeBytes: count('Bytes.'),
  smart: Type.Optional(Smart),
})

/** A display controller of the inventory. */
export const InventoryGraphics = Type.Object({
  address: Type.String({ description: 'PCI address, for example 0000:11:00.0.' }),
  vendor: text(),
  model: text(),
  memoryMiB: count('Dedicated memory.'),
  driverVersion: text(),
})

const Nic = Type.Object({
  name: Type.String(),
  macAddr: text(),
  driver: text(),
  firmware: text(),
  busAddress: text('For example 0000:00:1f.6.'),
  speedMbps: count('Speed of the link; absent while the link is down.'),
  duplex: Type.Optional(Type.Union([Type.Literal('full'), Type.Literal('half')])),
})

const MemoryModule = Type.Object({
  bank: text(),
  sizeBytes: count('Bytes.'),
  type: text('For example DDR4.'),
  formFactor: text('For example DIMM.'),
  manufacturer: text(),
  partNumber: text(),
  serial: text(),
  speedMTps: count('Configured speed, in megatransfers a second.'),
  voltage: amount('Configured voltage, in volts.'),
})

const Usb = Type.Object({
  bus: count('Number of the bus.'),
  device: count('Number of the device on the bus.'),
  id: text('Ids of vendor and product, for example 1d6b:0002.'),
  name: text('Name of the product, by its id.'),
  vendor: text('Name of the vendor, by its id.'),
  manufacturer: text('As the device reports it.'),
  serial: text(),
  type: text('For example Storage.'),
})

const Condition = Type.Object({
  message: Type.String(),
  reason: Type.String({ description: 'ToolMissing, CannotBeRead or TooMany.' }),
  status: text('True, False or Unknown.'),
  type: Type.String({ description: 'The part of the inventory that is affected.' }),
})

/** The result of a reading, without its time. */
export const Hardware = Type.Object({
  system: part({
    manufacturer: text(),
    model: text(),
    version: text(),
    serial: text(),
    sku: text(),
  }),
  board: part({ manufacturer: text(), model: text(), version: text(), serial: text(), assetTag: text() }),
  chassis: part({ manufacturer: text(), type: text(), version: text(), serial: text(), assetTag: text() }),
  bios: part({ vendor: text(), version: text(), releaseDate: text('Day, for example 2024-03-31.') }),
  processor: part({
    manufacturer: text(),
    brand: text('Of several kinds of cores the name of each.'),
    family: text(),
    model: text(),
    stepping: text(),
    revision: text(),
    socket: text('For example LGA4189.'),
    sockets: count('Number of processors.'),
    cores: count('Online cores of all processors.'),
    threads: count('Online threads of all processors.'),
    speedMHz: count('Speed in the brand name.'),
    speedMinMHz: count('Lowest speed that can be set.'),
    speedMaxMHz: count('Highest speed that can be set.'),
    cacheBytes: part({
      l1d: count('Of all cores.'),
      l1i: count('Of all cores.'),
      l2: count('Of all cores.'),
      l3: count('Of all processors.'),
    }),
    flags: Type.Optional(Type.Array(Type.String({ maxLength: 256 }))),
  }),
  memory: part({ slots: count('Number of slots, including empty ones.'), modules: Type.Array(MemoryModule) }),
  graphics: Type.Array(InventoryGraphics),
  usb: Type.Array(Usb),
  battery: part({
    manufacturer: text(),
    model: text(),
    serial: text(),
    type: text('For example Li-ion.'),
    cycles: count('Number of charge cycles.'),
    percent: amount('State of charge.'),
  }),
  temperature: part({
    processorCelsius: amount('Temperature of the whole processor.'),
    hottestCelsius: amount('Temperature of its hottest core.'),
    chipsetCelsius: amount('Temperature of the chipset.'),
  }),
  disks: Type.Array(InventoryDisk),
  nics: Type.Array(Nic),
  conditions: Type.Optional(Type.Array(Condition, { description: 'Parts that could not be read, and why.' })),
})
export type Hardware = Static<typeof Hardware>

/** Reply of `GET /v1/edge-mgmt/edgehosts/current/inventory`. */
export const Inventory = Type.Object(
  {
    readTimestamp: Type.String({ format: 'date-time', description: 'Time of the reading.' }),
    ...Hardware.properties,
  },
  { title: 'Inventory' },
)
export type Inventory = Static<typeof Inventory>
