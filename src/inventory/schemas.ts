import { Type, type Static, type TProperties } from 'typebox'

// What the machine does not say, or fills with a placeholder, is absent. Texts are printable and of at most 256 characters.

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
        'What the disk says of itself; standby: it sleeps and was not woken; unknown: it has no verdict.',
    },
  ),
  temperatureCelsius: amount('Of the disk.'),
  powerOnHours: count('Hours it has been on.'),
  usedPercent: amount('Of the life that its maker promises; may be over 100.'),
})

/** A disk as the inventory has it. */
export const InventoryDisk = Type.Object({
  name: Type.String({ description: 'Of the kernel, for example sda.' }),
  controller: text('As in the hardwareSpec of edgehosts/current.'),
  kind: Type.Optional(Type.Union([Type.Literal('HDD'), Type.Literal('SSD')])),
  vendor: text('As in the hardwareSpec of edgehosts/current.'),
  model: text(),
  serial: text(),
  firmware: text(),
  sizeBytes: count('Bytes.'),
  smart: Type.Optional(Smart),
})

/** A display controller as the inventory has it. */
export const InventoryGraphics = Type.Object({
  address: Type.String({ description: 'Of PCI, for example 0000:11:00.0.' }),
  vendor: text(),
  model: text(),
  memoryMiB: count('Of its own.'),
  driverVersion: text(),
})

const Nic = Type.Object({
  name: Type.String(),
  macAddr: text(),
  driver: text(),
  firmware: text(),
  busAddress: text('For example 0000:00:1f.6.'),
  speedMbps: count('Of the link that is up.'),
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
  speedMTps: count('Megatransfers a second, as it runs.'),
  voltage: amount('Volts, as it runs.'),
})

const Usb = Type.Object({
  bus: count('Number of the bus.'),
  device: count('Number on the bus.'),
  id: text('Vendor and product, for example 1d6b:0002.'),
  name: text('Of the product, by its id.'),
  vendor: text('By its id.'),
  manufacturer: text('As the device says it.'),
  serial: text(),
  type: text('For example Storage.'),
})

const Condition = Type.Object({
  message: Type.String(),
  reason: Type.String({ description: 'ToolMissing or CannotBeRead.' }),
  status: Type.String(),
  type: Type.String({ description: 'The part of the inventory that is affected.' }),
})

/** What a reading brings; its time is noted when it is stored. */
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
    brand: text(),
    family: text(),
    model: text(),
    stepping: text(),
    revision: text(),
    socket: text('For example LGA4189.'),
    sockets: count('Processors.'),
    cores: count('Of all processors, those that are online.'),
    threads: count('Of all processors, those that are online.'),
    speedMHz: count('Of the brand name.'),
    speedMinMHz: count('The slowest it may be set to.'),
    speedMaxMHz: count('The fastest it may be set to.'),
    cacheBytes: part({
      l1d: count('Of all cores.'),
      l1i: count('Of all cores.'),
      l2: count('Of all cores.'),
      l3: count('Of all processors.'),
    }),
    flags: Type.Optional(Type.Array(Type.String({ maxLength: 256 }))),
  }),
  memory: part({ slots: count('Also those that are empty.'), modules: Type.Array(MemoryModule) }),
  graphics: Type.Array(InventoryGraphics),
  usb: Type.Array(Usb),
  battery: part({
    manufacturer: text(),
    model: text(),
    serial: text(),
    type: text('For example Li-ion.'),
    cycles: count('Charges it has had.'),
    percent: amount('How full it is.'),
  }),
  temperature: part({
    processorCelsius: amount('Of the whole processor.'),
    hottestCelsius: amount('Of its hottest core.'),
    chipsetCelsius: amount('Of the chipset.'),
  }),
  disks: Type.Array(InventoryDisk),
  nics: Type.Array(Nic),
  conditions: Type.Optional(Type.Array(Condition, { description: 'What could not be read, and why.' })),
})
export type Hardware = Static<typeof Hardware>

/** What `GET /v1/edge-mgmt/edgehosts/current/inventory` answers. */
export const Inventory = Type.Object(
  {
    readTimestamp: Type.String({ format: 'date-time', description: 'When the machine was looked at.' }),
    ...Hardware.properties,
  },
  { title: 'Inventory' },
)
export type Inventory = Static<typeof Inventory>
