import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Check } from 'typebox/value'
import { describe, expect, it } from 'vitest'
import { Hardware } from '../../../src/inventory/schemas.ts'
import { inventoryOf } from '../../fixtures/inventory/machine.ts'

// The program as it runs on a host: systeminformation parses the tool output of different machines.

const machines = [
  ['rack-server', 'rack-server'],
  ['pc', ''],
  ['laptop', 'laptop'],
  ['single-board', 'single-board'],
  ['vm', ''],
] as const

const expected = (name: string) =>
  JSON.parse(
    readFileSync(join(import.meta.dirname, `../../fixtures/inventory/${name}.json`), 'utf8'),
  ) as Hardware

describe.each(machines)('the inventory of a %s', (name, tree) => {
  it('the inventory has the values of tools and kernel, in printable texts of at most 256 characters', async () => {
    const hardware = await inventoryOf(name, { tree })
    expect(hardware).toEqual(expected(name))
    expect(Check(Hardware, hardware)).toBe(true)
    const texts = JSON.stringify(hardware, (_, value: unknown) =>
      typeof value === 'string' && /[\p{C}]|.{257}/u.test(value) ? `BAD ${value}` : value,
    )
    expect(texts).not.toContain('BAD')
  })
})

it('the values of a tool that hangs are left out, and a condition names it', async () => {
  const { graphics, board, conditions } = await inventoryOf('pc', { hanging: ['lspci'], timeoutMs: 3_000 })
  expect(graphics).toEqual([])
  expect(board).toEqual(expected('pc').board)
  expect(conditions).toContainEqual({
    ...{ type: 'graphics', status: 'False', reason: 'CannotBeRead' },
    message: expect.stringMatching(/^systeminformation graphics\(\): timed-out \(3000 ms\)$/) as string,
  })
})

it('output of tools that is not JSON is left out, and the tools are named', async () => {
  const saying = { lsblk: '{not json', lscpu: '', smartctl: 'Segmentation fault' }
  const { board, disks, conditions } = await inventoryOf('rack-server', {
    tree: 'rack-server',
    saying,
  })
  const whole = expected('rack-server')
  expect(board).toEqual(whole.board)
  expect(disks.map(({ name }) => name)).toEqual(whole.disks.map(({ name }) => name))
  const messages = conditions?.map(({ type, message }) => `${type}: ${message}`)
  expect(messages).toEqual(
    expect.arrayContaining([
      'disks: lsblk: the answer is not JSON',
      'disks: smartctl /dev/sda: the answer is not JSON',
      'processor: lscpu: the answer is not JSON',
    ]),
  )
})

it('disks that are not read because there are too many are counted', async () => {
  const more = Array.from({ length: 200 }, (_, index) => {
    const path = `devices/pci0000:00/0000:00:17.0/virtio${index}/block/vd${index}`
    return [`/sys/block/vd${index} -> ../${path}`, `/sys/${path}/size = 2048`]
  }).flat()
  const { disks, conditions } = await inventoryOf('vm', { more })
  expect(disks).toHaveLength(128)
  expect(conditions).toContainEqual({
    ...{ type: 'disks', status: 'False', reason: 'TooMany' },
    message: expect.stringMatching(/^only the first 128 of 20\d are read$/) as string,
  })
})
