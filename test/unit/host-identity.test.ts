import { describe, expect, it } from 'vitest'
import { openHostRecord } from '../../src/host/host-record.ts'
import { chooseIdentity, idOfMachineId, usableProductUuid } from '../../src/host/identity.ts'
import { openDatabase } from '../../src/store/database.ts'
import { machine } from '../fixtures/host/tree.ts'
import { clockAt, recordingLog } from '../fixtures/host/edges.ts'

const uuid = '4C4C4544-0052-3510-8051-B7C04F4A3333'
const machineId = '3d1219c7c4c5404aaa1f6d2a48adfda4'
const nothing = { configured: undefined, stored: undefined, productUuid: undefined, machineId: undefined }

describe('product UUID', () => {
  it('is taken in lower case without dashes', () => {
    expect(usableProductUuid(`${uuid}\n`)).toBe('4c4c4544005235108051b7c04f4a3333')
  })

  it.each([
    '00000000-0000-0000-0000-000000000000',
    'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
    'fefefefe-fefe-fefe-fefe-fefefefefefe',
    '03000200-0400-0500-0006-000700080009',
    '03020100-0504-0706-0809-0a0b0c0d0e0f',
    'Not Settable',
    'To Be Filled By O.E.M.',
    '4c4c4544005235108051b7c04f4a3333',
    '',
  ])('refuses %j', (junk) => {
    expect(usableProductUuid(junk)).toBeUndefined()
  })

  it('accepts one that holds the MAC address behind zeros', () => {
    expect(usableProductUuid('00000000-0000-0000-0000-d05099c0ffee')).toBeDefined()
  })
})

describe('machine-id', () => {
  it('gives 128 bits that do not show it', () => {
    const id = idOfMachineId(`${machineId}\n`)
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(id).not.toContain(machineId)
  })

  it('gives the same for ever', () => {
    expect(idOfMachineId(machineId)).toBe('ce16a10221d81f285f28c81b01ad7195')
  })

  it.each(['uninitialized', '', '0'.repeat(32), undefined])('refuses %j', (junk) => {
    expect(idOfMachineId(junk)).toBeUndefined()
  })
})

describe('choice', () => {
  it.each([
    [
      { ...nothing, configured: 'kiosk-7', stored: 'edge-1', productUuid: uuid, machineId },
      'kiosk-7',
      'configuration',
    ],
    [{ ...nothing, stored: 'edge-1', productUuid: uuid, machineId }, 'edge-1', 'stored'],
    [{ ...nothing, productUuid: uuid, machineId }, 'edge-4c4c4544005235108051b7c04f4a3333', 'product-uuid'],
    [
      { ...nothing, productUuid: 'Not Settable', machineId },
      'edge-ce16a10221d81f285f28c81b01ad7195',
      'machine-id',
    ],
  ])('%# takes the strongest source', (sources, id, source) => {
    expect(chooseIdentity(sources)).toEqual({ id, source })
  })

  it('is none when the machine has nothing', () => {
    expect(chooseIdentity(nothing)).toBeUndefined()
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
      configuredId: options.configuredId,
    })

  it('keeps the id when the hardware says otherwise later', async () => {
    const database = openDatabase(':memory:', log)
    const first = await open(database)
    const later = await open(database, { tree: 'single-board', now: 9_000 })
    expect(later.id).toBe(first.id)
    expect(later.createdAt).toEqual(new Date(1_000))
  })

  it('lets a configured id win over the stored one, and keeps it when it leaves the configuration', async () => {
    const database = openDatabase(':memory:', log)
    await open(database)
    expect((await open(database, { configuredId: 'kiosk-7' })).id).toBe('kiosk-7')
    expect((await open(database)).id).toBe('kiosk-7')
  })

  it('makes a random id, kept and warned about, where the machine has nothing', async () => {
    const database = openDatabase(':memory:', log)
    const { id } = await open(database, { tree: 'container' })
    expect(id).toMatch(/^edge-[0-9a-f]{32}$/)
    expect((await open(database, { tree: 'container' })).id).toBe(id)
    expect((await open(openDatabase(':memory:', log), { tree: 'container' })).id).not.toBe(id)
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(2)
  })

  it('moves the time of the last change with the facts only, over restarts', async () => {
    const database = openDatabase(':memory:', log)
    expect((await open(database, { now: 1_000 })).noteFacts('a')).toEqual(new Date(1_000))
    const again = await open(database, { now: 2_000 })
    expect(again.noteFacts('a')).toEqual(new Date(1_000))
    expect(again.noteFacts('b')).toEqual(new Date(2_000))
  })
})
