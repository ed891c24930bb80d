import { describe, expect, it } from 'vitest'
import { checkValue } from '../../../src/config/check-value.ts'
import { listKeys } from '../../../src/config/key.ts'
import { configSchema } from '../../../src/edgehostd/declarations.ts'
import { openHostRecord } from '../../../src/host/identity/host-record.ts'
import {
  idOfMachineId,
  readIdentity,
  usableProductUuid,
  usableSerial,
} from '../../../src/host/identity/identity.ts'
import { cpuNow } from '../../support/cpu-time.ts'
import { openDatabase } from '../../support/open-database.ts'
import { machine } from '../../fixtures/host/tree.ts'
import { noise } from '../../support/random.ts'
import { clockAt, recordingLog } from '../../fixtures/host/edges.ts'

const uuid = '4C4C4544-0052-3510-8051-B7C04F4A3333'
const machineId = '3d1219c7c4c5404aaa1f6d2a48adfda4'
const usual = ['product-uuid', 'machine-id']

describe('product UUID', () => {
  it('a product UUID is used in lower case without dashes', () => {
    expect(usableProductUuid(`${uuid}\n`)).toBe('4c4c4544005235108051b7c04f4a3333')
  })

  it.each([
    '00000000-0000-0000-0000-000000000000',
    'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
    'fefefefe-fefe-fefe-fefe-fefefefefefe',
    '03000200-0400-0500-0006-000700080009',
    '03020100-0504-0706-0809-0a0b0c0d0e0f',
    '10000000-0000-8000-0040-000000000000',
    '56F49712-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
    'DC698397-FA54-4CF2-82C8-B1B5307A6A7F',
    // Boards of one product line, and what is written by hand; each in both byte orders.
    '8a95d198-7f46-11e5-bf8b-08002704d48e',
    '98d1958a-467f-e511-bf8b-08002704d48e',
    '00112233-4455-6677-8899-aabbccddeeff',
    '33221100-5544-7766-8899-aabbccddeeff',
    '12345678-1234-5678-90ab-cddeefaabbcc',
    '78563412-3412-7856-90ab-cddeefaabbcc',
    '12345678-90ab-cdef-1234-567890abcdef',
    '01020304-0506-0708-090a-0b0c0d0e0f10',
    '04030201-0605-0807-090a-0b0c0d0e0f10',
    'f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f',
    'fedcba98-7654-3210-fedc-ba9876543210',
    '11111111-2222-3333-4444-555555555555',
    'deadbeef-dead-beef-dead-beefdeadbeef',
    '00000000-0000-0000-0000-000000000001',
    '00020003-0004-0005-0006-000700080009',
    '978369dc-54fa-f24c-82c8-b1b5307a6a7f',
    'aabbccdd-eeff-0011-2233-445566778899',
    'ddccbbaa-ffee-1100-2233-445566778899',
    '11223344-5566-7788-9900-aabbccddeeff',
    '44332211-6655-8877-9900-aabbccddeeff',
    'fedcba98-7654-3210-0123-456789abcdef',
    '01020304-0506-0708-0910-111213141516',
    '20212223-2425-2627-2829-303132333435',
    '31323334-3536-3738-3930-414243444546',
    '00000000-0000-0000-0000-001122334455',
    '123e4567-e89b-12d3-a456-426614174000',
    '67453e12-9be8-d312-a456-426614174000',
    'a1b2c3d4-e5f6-7890-abcd-ef1234567890',
    'Not Settable',
    'To Be Filled By O.E.M.',
    '4c4c4544005235108051b7c04f4a3333',
    '',
  ])('the product UUID %j is refused', (junk) => {
    expect(usableProductUuid(junk)).toBeUndefined()
  })

  it('a product UUID of zeros and the MAC address is accepted', () => {
    expect(usableProductUuid('00000000-0000-0000-0000-d05099c0ffee')).toBeDefined()
  })

  it('a product UUID that is the text of a serial number is accepted', () => {
    // As of servers whose firmware writes product and serial number: 816816CZ3214ABCD.
    expect(usableProductUuid('38313638-3136-435a-3332-313441424344')).toBeDefined()
  })

  it('10,000 random UUIDs are accepted', () => {
    for (let count = 0; count < 10_000; count += 1) {
      const digits = noise(16, count).toString('hex')
      const fields = digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
      expect(usableProductUuid(fields), fields).toBe(digits)
    }
  })
})

describe('machine-id', () => {
  it('the machine-id gives 128 bits that do not show it', () => {
    const id = idOfMachineId(`${machineId}\n`)
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(id).not.toContain(machineId)
  })

  it('the id of a machine-id never changes', () => {
    expect(idOfMachineId(machineId)).toBe('ce16a10221d81f285f28c81b01ad7195')
  })

  it.each(['uninitialized', '', '0'.repeat(32), undefined])('the machine-id %j is refused', (junk) => {
    expect(idOfMachineId(junk)).toBeUndefined()
  })
})

describe('serial number', () => {
  it.each([
    ['CZ3214ABCD\n', 'cz3214abcd'],
    ['.7V8KXX2.CNFCP0097A00T2.', '7v8kxx2cnfcp0097a00t2'],
    ['VMware-56 4d 7b 1b 0c f2 33 1a-9e 01', 'vmware-564d7b1b0cf2331a-9e01'],
    ['/PF-3XY21/', 'pf-3xy21'],
    ['10000000f1e2d3c4\0', '10000000f1e2d3c4'],
    ['first\nsecond', 'first'],
    [uuid, '4c4c4544005235108051b7c04f4a3333'],
    ['Seriennummer: 7', 'seriennummer7'],
    ['1235', '1235'],
  ])('the serial %j is used as %s', (text, value) => {
    expect(usableSerial(text)).toBe(value)
  })

  it.each([
    ...['', ' ', '\0', '0', 'n/a', '123', '-', 'a-b-c', '°°°°°'],
    ...['00000000', '0000-0000', 'FFFFFFFFFFFF', 'xxxxxxxxxx', '........'],
    ...[
      '0123456789',
      '1234567890ABCDEF',
      '87654321',
      'Not Defined',
      'TBD by ODM',
      'Part Number',
      '1234567890',
      '123456789',
      '12345678',
      '0123456789ABCDEF',
      '987654321',
      'MB-1234567890',
    ],
    ...[
      'Not Settable',
      'To be filled by O.E.M.',
      'To Be Filled By O.E.M. by O.E.M.',
      'Default string',
      'Default',
    ],
    ...['System Serial Number', 'Chassis Serial Number', 'Base Board Serial Number', 'Board Serial Number'],
    ...[
      'Serial Number xxxxxx',
      'Type2 - Board Serial Number',
      'SerNum0',
      'Unspecified Base Board Serial Number',
    ],
    ...['None', 'Not Specified', 'Not Applicable', 'Not Available', 'Not Present', 'Not Provided', 'INVALID'],
    ...['Unknown', 'Undefined', 'null', 'Empty', 'OEM', 'No Asset Tag', '<BAD INDEX>', '<OUT OF SPEC>'],
    ...['03000200-0400-0500-0006-000700080009', 'x'.repeat(60) + '-'.repeat(60) + 'q5'.repeat(60)],
  ])('the serial %j is refused', (junk) => {
    expect(usableSerial(junk)).toBeUndefined()
  })

  it('a long serial that is almost a placeholder is refused at once', () => {
    const begin = cpuNow()
    usableSerial(`${'xxx0'.repeat(30)}q`)
    usableSerial(`${'serial'.repeat(20)}q`)
    expect(cpuNow() - begin).toBeLessThan(500)
  })
})

describe('sources', () => {
  const { log, lines } = recordingLog()
  const tree = `/sys/class/dmi/id/product_serial = CZ3214ABCD
/sys/class/dmi/id/board_serial = BS-77001
/sys/class/dmi/id/chassis_serial = CH-77001
/proc/device-tree/serial-number = 10000000f1e2d3c4\0
/etc/machine-id = ${machineId}
/var/lib/dbus/machine-id = ${machineId}
/etc/edge-id <<
shop 12
and more
>>
`
  it.each([
    [['product-serial'], 'edge-cz3214abcd', 'product-serial'],
    [['board-serial'], 'edge-bs-77001', 'board-serial'],
    [['chassis-serial'], 'edge-ch-77001', 'chassis-serial'],
    [['device-tree-serial'], 'edge-10000000f1e2d3c4', 'device-tree-serial'],
    [['machine-id'], 'edge-ce16a10221d81f285f28c81b01ad7195', 'machine-id'],
    [['/etc/edge-id'], 'edge-shop12', '/etc/edge-id'],
    [['product-uuid', '/etc/none', 'board-serial', 'machine-id'], 'edge-bs-77001', 'board-serial'],
  ])('the sources %j give %s', async (sources, id, source) => {
    expect(await readIdentity(machine('', tree), sources, log)).toEqual({ id, source })
  })

  it.each(['/etc/machine-id', '/var/lib/dbus/machine-id'])(
    'the machine-id is never shown where it is configured as %s',
    async (path) => {
      const identity = await readIdentity(machine('', tree), [path], log)
      expect(identity?.id).toBe('edge-ce16a10221d81f285f28c81b01ad7195')
    },
  )

  it('a placeholder of the vendor is skipped as a source', async () => {
    const sources = ['product-uuid', 'product-serial', 'chassis-serial', 'board-serial']
    expect(await readIdentity(machine('gpu-host'), sources, log)).toEqual({
      id: 'edge-7v8kxx2cnfcp0097a00t2',
      source: 'board-serial',
    })
  })

  it('a source that cannot be read is skipped and logged', async () => {
    const identity = await readIdentity(machine('', tree), ['/etc', 'board-serial'], log)
    expect(identity?.source).toBe('board-serial')
    expect(lines).toMatchObject([{ level: 40, path: '/etc', err: { code: 'FileRefused' } }])
  })

  it('there is no identity where no source has a usable value', async () => {
    expect(await readIdentity(machine('', tree), [], log)).toBeUndefined()
    expect(await readIdentity(machine('container'), usual, log)).toBeUndefined()
  })
})

describe('setting', () => {
  const key = listKeys(configSchema).find(({ path }) => path === 'host.identitySources')!
  const accepts =
    'it must be product-uuid, product-serial, board-serial, chassis-serial, device-tree-serial, machine-id or the absolute path of a file'

  it('by default the identity comes from the product UUID, then from the machine-id', () => {
    expect(key.schema.default).toEqual(usual)
  })

  it('the setting identitySources accepts every source, and paths', () => {
    const names = ['product-serial', 'board-serial', 'chassis-serial', 'device-tree-serial']
    expect(checkValue(key, [...usual, ...names, '/etc/edge id', '/a'])).toEqual([])
  })

  it.each([
    ['product_uuid', '"product_uuid"'],
    ['etc/edge-id', '"etc/edge-id"'],
    ['/etc/', '"/etc/"'],
    ['/', '"/"'],
    ['', 'empty'],
    [7, '7'],
  ])('the setting identitySources refuses %j by name and reason', (entry, found) => {
    const [message, ...more] = checkValue(key, ['machine-id', entry])
    expect(message).toMatch(`host.identitySources[1] is ${found}; ${accepts}`)
    expect(more).toEqual([])
  })
})

describe('record', () => {
  const { log, lines } = recordingLog()
  const open = (
    database: ReturnType<typeof openDatabase>,
    options: { configuredId?: string; now?: number; tree?: string } = {},
  ) =>
    openHostRecord({
      files: machine(options.tree ?? 'rack-server'),
      database,
      clock: clockAt(options.now ?? 1_000),
      log,
      settings: {
        identitySources: usual,
        ...(options.configuredId === undefined ? {} : { id: options.configuredId }),
      },
    })

  it('the id is kept when the hardware changes later', async () => {
    const database = openDatabase(':memory:', log)
    const first = await open(database)
    const later = await open(database, { tree: 'single-board', now: 9_000 })
    expect(later.id).toBe(first.id)
    expect(later.createdAt).toEqual(new Date(1_000))
  })

  it('a configured id replaces the stored one, and is kept when it is removed from the configuration', async () => {
    const database = openDatabase(':memory:', log)
    await open(database)
    expect((await open(database, { configuredId: 'kiosk-7' })).id).toBe('kiosk-7')
    expect((await open(database)).id).toBe('kiosk-7')
  })

  it('the id is kept when other sources are configured later', async () => {
    const database = openDatabase(':memory:', log)
    const { id } = await open(database)
    const files = machine('gpu-host')
    const settings = { identitySources: ['board-serial'] }
    const record = await openHostRecord({ settings, files, database, clock: clockAt(9_000), log })
    expect(record.id).toBe(id)
  })

  it('the id is random, stored and warned about where the machine has no usable value', async () => {
    const database = openDatabase(':memory:', log)
    const { id } = await open(database, { tree: 'container' })
    expect(id).toMatch(/^edge-[0-9a-f]{32}$/)
    expect((await open(database, { tree: 'container' })).id).toBe(id)
    expect((await open(openDatabase(':memory:', log), { tree: 'container' })).id).not.toBe(id)
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(2)
  })

  it('the time of the last change moves only with the facts, also across restarts', async () => {
    const database = openDatabase(':memory:', log)
    expect((await open(database, { now: 1_000 })).putFacts('a')).toEqual(new Date(1_000))
    const again = await open(database, { now: 2_000 })
    expect(again.putFacts('a')).toEqual(new Date(1_000))
    expect(again.putFacts('b')).toEqual(new Date(2_000))
  })
})
