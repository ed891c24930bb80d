import { expect, it } from 'vitest'
import { registeredName } from '../../../src/uplink/host-key.ts'

it.each([
  ['press-3', 'press-3'],
  ['Press 3, hall B', 'Press-3-hall-B'],
  [' -x_', 'x'],
  ['机器', 'box'],
  ['é'.repeat(300) + 'a', 'a'],
  ['a'.repeat(252) + '-b', 'a'.repeat(252)],
  ['the-id', 'box'],
])('a host named %j registers as %j', (name, registered) => {
  expect(registeredName(name, 'box', 'the-id')).toBe(registered)
})

it('a host without a name of its own registers by its id', () => {
  expect(registeredName('the-id', 'localhost', 'the-id')).toBe('the-id')
  expect(registeredName('the-id.', 'localhost.localdomain', 'the-id.')).toBe('the-id')
})
