import { expect, it } from 'vitest'
import { nextSlot } from '../../../src/definition/slots/slot-names.ts'

it.each([
  [{}, undefined],
  [{ embedded: 9 }, 'embedded'],
  [{ embedded: 9, overridden: 1 }, 'overridden'],
  [{ embedded: 9, update: 1 }, 'update'],
  [{ update: 1, overridden: 2 }, 'overridden'],
  [{ update: 2, overridden: 1 }, 'update'],
  [{ update: 1, overridden: 1 }, 'update'],
])('of the slots %o, the definition comes from %s', (added: Readonly<Record<string, number>>, slot) => {
  expect(nextSlot((each) => added[each])).toBe(slot)
})
