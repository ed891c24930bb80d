import { expect, it } from 'vitest'
import { integerOf, numberOf, serialOf, textOf } from '../../../src/inventory/rules/clean.ts'
import { hasSilentSensor } from '../../../src/inventory/program/read-hardware.ts'
import { diskOf, temperatureOf, processorOf } from '../../../src/inventory/rules/hardware.ts'
import { machine } from '../../fixtures/host/tree.ts'

it.each([
  ...['', '  ', '-', '0', '-1', '00000000', 'None', 'N/A', 'Unknown', 'Not Specified', 'Not Available'],
  ...['To Be Filled By O.E.M.', 'To be filled by O.E.M. ', 'Default string', 'Default', 'O.E.M.', 'OEM'],
  ...['System Product Name', 'System manufacturer', 'System Serial Number', 'Base Board Serial Number'],
  ...['Chassis Version', 'Asset-1234567890'.slice(0, 5), 'AssetTagNum0'.slice(0, 8), 'SerNum01', 'PartNum3'],
  ...[
    'Manufacturer00',
    'No Asset Tag',
    'No Asset Information',
    '<BAD INDEX>',
    '<OUT OF SPEC>',
    '[Empty]'.slice(1, 6),
  ],
  ...['x.x', 'XXXXXXXX', 'Undefined', 'Not Defined', '[unknown]', '0x0000', null, undefined, {}, ['a'], true],
])('the text %j is a placeholder', (value) => {
  expect(textOf(value)).toBeUndefined()
})

it.each([
  ...[
    'PowerEdge R740',
    'ASUSTeK COMPUTER INC.',
    'System x3650 M5',
    'Unknown Pleasures 2000',
    'OEMTECH',
    '0W6W6G',
  ],
  ...['1.0', 'A', 'Chassis 4U', 'Defaultware', 'Nonesuch GmbH', 'Bühne 3', 'Standard PC (Q35 + ICH9, 2009)'],
])('the text %j is kept', (value) => {
  expect(textOf(value)).toBe(value)
})

it('texts are one printable line of at most 256 characters', () => {
  expect(textOf('Evil\u001b[31m\r\nname\u202e\0')).toBe('Evil\\u001b[31m name\\u202e\\u0000')
  expect(textOf('\ud83d'.repeat(4))).toBe('\ufffd'.repeat(4))
  for (const long of ['a'.repeat(1_000_000), '\u0007'.repeat(1_000), '\ud83d\ude00'.repeat(1_000)]) {
    const text = textOf(long)!
    expect(text.length).toBeLessThanOrEqual(256)
    expect(text.endsWith('...')).toBe(true)
    expect(text.isWellFormed()).toBe(true)
  }
})

it('serial numbers that a whole product line has are left out', () => {
  for (const value of ['0123456789', 'Default string', '1234567890', 'aaaaaaaa', '....'])
    expect(serialOf(value), value).toBeUndefined()
  for (const value of ['7QX4B93', '12', 'sata-0', '.7QX4B93.CNIVC0099E0031.'])
    expect(serialOf(value), value).toBe(value)
})

it('numbers that are not above 0 are left out', () => {
  expect([0, -1, '', 'Unknown', NaN, Infinity, null, [4], {}].map(numberOf)).toEqual(Array(9).fill(undefined))
  expect([4, 1.35, '3200 MT/s', '4700.0000', '65536 (2 instances)'].map(numberOf)).toEqual([
    4, 1.35, 3_200, 4_700, 65_536,
  ])
  expect(integerOf(0.2)).toBeUndefined()
  expect(integerOf(2 ** 60)).toBeUndefined()
})

it.each([-54.9, -12, -0.5, 0, 21.5, 117])('a temperature of %d degrees is a temperature', (current) => {
  const smart = { smart_status: { passed: true }, temperature: { current } }
  const disk = diskOf({
    ...{ disk: { name: 'sda', controller: 'SATA', size: 1, fileSystems: [] }, block: {} },
    smart,
  })
  expect(disk.smart).toMatchObject({ state: 'passed', temperatureCelsius: current })
  expect(temperatureOf({ main: current, max: current, chipset: null })).toEqual({
    temperature: { processorCelsius: current, hottestCelsius: current },
  })
})

it('what is absent or no number is no temperature', () => {
  expect(temperatureOf({ main: null, max: '12', chipset: Number.NaN })).toEqual({})
})

it.each([-273, -273.15, -128, 255, Infinity])(
  '%d is the value of a sensor that measures nothing',
  (current) => {
    expect(temperatureOf({ main: current, max: current, chipset: current })).toEqual({})
  },
)

it('0 of a processor is no temperature where one of its sensors gives no value', async () => {
  const monitor = '/sys/class/hwmon/hwmon2'
  const silent = `${monitor}/temp1_label = Package id 0\n${monitor}/temp1_input = \n`
  const reads = `${monitor}/temp1_label = Package id 0\n${monitor}/temp1_input = 0\n`
  const other = `${monitor}/temp3_label = SYSTIN\n`
  const found = await Promise.all(
    ['', silent, reads, reads + other].map((tree) => hasSilentSensor(machine('', tree))),
  )
  expect(found).toEqual([false, true, false, false])
  expect(temperatureOf({ main: 0, max: 0, chipset: 0 }, true)).toEqual({ temperature: { chipsetCelsius: 0 } })
  expect(temperatureOf({ main: -3, max: 0 }, true)).toEqual({ temperature: { processorCelsius: -3 } })
})

it('several kinds of cores are one processor, with the names and the range of speeds of all', () => {
  const kind = (name: string, max: string, min: string) => [
    {
      ...{ field: 'Model name:', data: name },
      children: [
        { field: 'CPU max MHz:', data: max },
        { field: 'CPU min MHz:', data: min },
      ],
    },
  ]
  const lscpu = {
    lscpu: [
      { field: 'Vendor ID:', data: 'ARM' },
      ...kind('Cortex-A55', '1800.0000', '408.0000'),
      ...kind('Cortex-A76', '2400.0000', '300.0000'),
    ],
  }
  // The kernel numbers a cluster as a socket.
  const topology = '# CORE,SOCKET\n0,0\n1,0\n2,0\n3,0\n0,1\n1,1\n0,2\n1,2\n'
  expect(processorOf({ cpu: {}, lscpu, topology }).processor).toEqual({
    ...{ brand: 'Cortex-A55, Cortex-A76', sockets: 1, cores: 8, threads: 8 },
    ...{ speedMinMHz: 300, speedMaxMHz: 2400 },
  })
})

it.each([
  ['of which lscpu does not know one', 'Cortex-A55', '-'],
  ['of one name', 'Cortex-A55', 'Cortex-A55'],
])('a processor of two kinds of core %s has one socket', (_what, ...names) => {
  const kind = (name: string) => ({ field: 'Model name:', data: name, children: [] })
  const lscpu = { lscpu: [{ field: 'Vendor ID:', data: 'ARM', children: names.map(kind) }] }
  const topology = '# CORE,SOCKET\n0,0\n1,0\n0,1\n1,1\n'
  expect(processorOf({ cpu: {}, lscpu, topology }).processor).toEqual({
    ...{ brand: 'Cortex-A55', sockets: 1, cores: 4, threads: 4 },
  })
})
