import type { Context } from '../../ctl/client.ts'
import { renderFacts, type Fact, type Paper, renderTable, type Column, moment } from '../../ctl/layout.ts'
import type { Inventory } from '../schemas.ts'

const path = '/v1/edge-mgmt/edgehosts/current/inventory'
// The program that reads the inventory has a limit of 300 s; most hosts need two.
const timeoutMs = 330_000

type Item<Name extends 'disks' | 'graphics' | 'nics' | 'usb'> = Inventory[Name][number]
type Module = NonNullable<Inventory['memory']>['modules'][number]

/** `host inventory`: all parts of the machine. */
export async function showInventory({ client, output, line }: Context<'refresh'>): Promise<undefined> {
  const asked = line.options.refresh === undefined ? path : `${path}?refresh=true`
  const inventory = await client.get<Inventory>(asked, ['readTimestamp', 'disks', 'nics'], timeoutMs)
  await output.show(inventory, (paper) => render(inventory, paper))
  return undefined
}

function render(inventory: Inventory, paper: Paper): string {
  const table = <T>(rows: readonly T[], layout: readonly Column<T>[]) =>
    rows.length > 0 ? [renderTable(rows, layout, paper.columns)] : []
  return [
    renderFacts(factsOf(inventory), paper),
    ...table(inventory.memory?.modules ?? [], moduleLayout),
    ...table(inventory.disks, diskLayout),
    ...table(inventory.nics, nicLayout),
    ...table(inventory.graphics, graphicsLayout),
    ...table(inventory.usb, usbLayout),
  ].join('\n')
}

function factsOf(inventory: Inventory): Fact[] {
  const { system, board, chassis, bios, processor, memory, battery, temperature } = inventory
  const fact = (label: string, ...parts: readonly (string | undefined)[]): Fact[] => {
    const text = parts.filter(Boolean).join(', ')
    return text === '' ? [] : [{ label, lines: [text] }]
  }
  const name = (...parts: readonly (string | undefined)[]) => parts.filter(Boolean).join(' ')
  const serial = (value: string | undefined) => (value === undefined ? undefined : `serial ${value}`)
  return [
    ...fact('Read', moment(inventory.readTimestamp)),
    ...fact(
      'System',
      name(system?.manufacturer, system?.model, system?.version),
      serial(system?.serial),
      system?.sku && `SKU ${system.sku}`,
    ),
    ...fact('Board', name(board?.manufacturer, board?.model, board?.version), serial(board?.serial)),
    ...fact('Chassis', name(chassis?.manufacturer, chassis?.type), serial(chassis?.serial)),
    ...fact('Firmware', name(bios?.vendor, bios?.version), bios?.releaseDate),
    ...fact(
      'Processor',
      name(processor?.manufacturer, processor?.brand),
      processor?.sockets === undefined
        ? undefined
        : `${processor.sockets} × ${(processor.cores ?? 0) / processor.sockets} cores`,
      processor?.threads === undefined ? undefined : `${processor.threads} threads`,
      processor?.speedMaxMHz === undefined ? undefined : `up to ${processor.speedMaxMHz} MHz`,
    ),
    ...fact('Memory', memory && `${memory.modules.length} of ${memory.slots ?? 0} slots used`),
    ...fact(
      'Battery',
      name(battery?.manufacturer, battery?.model),
      serial(battery?.serial),
      battery?.percent === undefined ? undefined : `${battery.percent} %`,
    ),
    ...fact(
      'Temperature',
      temperature?.processorCelsius === undefined
        ? undefined
        : `processor ${temperature.processorCelsius} °C`,
    ),
    ...(inventory.conditions ?? []).map(({ type, message }): Fact => ({
      label: 'Not read',
      lines: [`${type}: ${message}`],
      mood: 'warning',
    })),
  ]
}

const gib = (bytes: number | undefined) =>
  bytes === undefined ? undefined : `${Math.round((bytes / 2 ** 30) * 10) / 10} GiB`

const moduleLayout: readonly Column<Module>[] = [
  { title: 'BANK', read: ({ bank }) => bank, isFlexible: true },
  { title: 'SIZE', read: ({ sizeBytes }) => gib(sizeBytes) },
  { title: 'TYPE', read: ({ type, formFactor }) => [type, formFactor].filter(Boolean).join(' ') },
  {
    title: 'MODULE',
    read: ({ manufacturer, partNumber }) => [manufacturer, partNumber].filter(Boolean).join(' '),
    isFlexible: true,
  },
  { title: 'SERIAL', read: ({ serial }) => serial, isFlexible: true },
]

const diskLayout: readonly Column<Item<'disks'>>[] = [
  { title: 'DISK', read: ({ name }) => name },
  { title: 'KIND', read: ({ controller, kind }) => [controller, kind].filter(Boolean).join(' ') },
  { title: 'MODEL', read: ({ vendor, model }) => modelOf(vendor, model), isFlexible: true },
  { title: 'SERIAL', read: ({ serial }) => serial, isFlexible: true },
  { title: 'FIRMWARE', read: ({ firmware }) => firmware },
  { title: 'SIZE', read: ({ sizeBytes }) => gib(sizeBytes) },
  { title: 'SMART', read: ({ smart }) => smart?.state },
]

/** The model of an ATA disk begins with its maker, which is then not shown twice. */
const modelOf = (vendor: string | undefined, model: string | undefined) =>
  vendor !== undefined && model?.toLowerCase().startsWith(vendor.toLowerCase())
    ? model
    : [vendor, model].filter(Boolean).join(' ')

const nicLayout: readonly Column<Item<'nics'>>[] = [
  { title: 'NIC', read: ({ name }) => name },
  { title: 'MAC', read: ({ macAddr }) => macAddr },
  { title: 'DRIVER', read: ({ driver }) => driver },
  { title: 'FIRMWARE', read: ({ firmware }) => firmware, isFlexible: true },
  {
    title: 'LINK',
    read: ({ speedMbps, duplex }) =>
      [speedMbps === undefined ? undefined : `${speedMbps} Mb/s`, duplex].filter(Boolean).join(' '),
  },
]

const graphicsLayout: readonly Column<Item<'graphics'>>[] = [
  { title: 'GRAPHICS', read: ({ address }) => address },
  { title: 'MODEL', read: ({ vendor, model }) => modelOf(vendor, model), isFlexible: true },
  { title: 'MEMORY', read: ({ memoryMiB }) => (memoryMiB === undefined ? undefined : `${memoryMiB} MiB`) },
]

const usbLayout: readonly Column<Item<'usb'>>[] = [
  { title: 'USB', read: ({ id }) => id },
  {
    title: 'DEVICE',
    read: ({ manufacturer, vendor, name }) => [manufacturer ?? vendor, name].filter(Boolean).join(' '),
    isFlexible: true,
  },
  { title: 'SERIAL', read: ({ serial }) => serial, isFlexible: true },
]
