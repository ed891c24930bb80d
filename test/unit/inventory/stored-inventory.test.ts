import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Hardware } from '../../../src/inventory/schemas.ts'
import { parseHardware } from '../../../src/inventory/stored-inventory.ts'

const read = (name: string) =>
  JSON.parse(
    readFileSync(join(import.meta.dirname, `../../fixtures/inventory/${name}.json`), 'utf8'),
  ) as Hardware

it.each(['rack-server', 'pc', 'laptop', 'single-board', 'vm'])(
  'the inventory of a %s is accepted as it was stored',
  (name) => {
    expect(parseHardware(JSON.stringify(read(name)))).toEqual(read(name))
  },
)

const rack = read('rack-server')
it.each<readonly [unknown, string]>([
  [null, 'must be object'],
  [[], 'must be object'],
  [{}, 'must have required properties graphics'],
  [{ ...rack, disks: {} }, '/disks must be array'],
  [{ ...rack, disks: [{}] }, '/disks/0 must have required properties name'],
  [{ ...rack, disks: [{ name: 'sda', kind: 'TAPE' }] }, '/disks/0/kind must'],
  [{ ...rack, disks: [{ name: 'sda', sizeBytes: 1.5 }] }, '/disks/0/sizeBytes must be integer'],
  [{ ...rack, system: { serial: 7 } }, '/system/serial must be string'],
])('a stored inventory %j is refused: %s', (value, problem) => {
  expect(() => parseHardware(JSON.stringify(value))).toThrow(problem)
})
