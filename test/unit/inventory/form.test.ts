import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findMisfit } from '../../../src/inventory/rules/form.ts'
import { Hardware } from '../../../src/inventory/schemas.ts'

const read = (name: string) =>
  JSON.parse(
    readFileSync(join(import.meta.dirname, `../../fixtures/inventory/${name}.json`), 'utf8'),
  ) as Hardware

it.each(['rack-server', 'pc', 'laptop', 'single-board', 'vm'])(
  'the inventory of a %s has its form',
  (name) => {
    expect(findMisfit(Hardware, read(name))).toBeUndefined()
  },
)

const rack = read('rack-server')
it.each<readonly [unknown, string]>([
  [null, ''],
  [[], ''],
  [{}, '/graphics'],
  [{ ...rack, disks: {} }, '/disks'],
  [{ ...rack, disks: [{}] }, '/disks/0/name'],
  [{ ...rack, disks: [{ name: 'sda', kind: 'TAPE' }] }, '/disks/0/kind'],
  [{ ...rack, disks: [{ name: 'sda', sizeBytes: 1.5 }] }, '/disks/0/sizeBytes'],
  [{ ...rack, system: { serial: 7 } }, '/system/serial'],
])('%j has another form at %s', (value, path) => {
  expect(findMisfit(Hardware, value)).toBe(path)
})
