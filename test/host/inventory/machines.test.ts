import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Check } from 'typebox/value'
import { describe, expect, it } from 'vitest'
import { Hardware } from '../../../src/inventory/schemas.ts'
import { inventoryOf } from '../../fixtures/inventory/machine.ts'

// The program as it runs on a host: systeminformation parses what the tools of unlike machines print.

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
  it('has what its tools and its kernel say, in printable texts of at most 256 characters', async () => {
    const hardware = await inventoryOf(name, { tree })
    expect(hardware).toEqual(expected(name))
    expect(Check(Hardware, hardware)).toBe(true)
    const texts = JSON.stringify(hardware, (_, value: unknown) =>
      typeof value === 'string' && /[\p{C}]|.{257}/u.test(value) ? `BAD ${value}` : value,
    )
    expect(texts).not.toContain('BAD')
  }, 60_000)
})

it('leaves out what a tool that hangs would say, and names it', async () => {
  const { graphics, board, conditions } = await inventoryOf('pc', { hanging: ['lspci'], timeoutMs: 3_000 })
  expect(graphics).toEqual([])
  expect(board).toEqual(expected('pc').board)
  expect(conditions).toContainEqual({
    ...{ type: 'graphics', status: 'False', reason: 'CannotBeRead' },
    message: expect.stringMatching(/^systeminformation graphics\(\): timed-out \(3000 ms\)$/) as string,
  })
}, 60_000)
