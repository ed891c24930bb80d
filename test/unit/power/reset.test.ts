import { expect, it } from 'vitest'
import { parseWipe, phasesOf } from '../../../src/power/reset.ts'

const state = '/var/lib/edgehostd'

it.each([
  ['everything of a user', {}, ['cluster', 'definitions', 'content', 'sessions']],
  ['all but the content', { keepsContent: true }, ['cluster', 'definitions', 'sessions']],
  [
    'configuration, identity and network too, the network last',
    { wipe: ['network', 'configuration', 'identity'] as const },
    ['cluster', 'definitions', 'content', 'configuration', 'sessions', 'identity', 'network'],
  ],
])('a reset removes %s', (_what, wish, phases) => {
  expect(phasesOf({ keepsContent: false, wipe: [], ...wish })).toEqual(phases)
})

it('what is wiped is read in any order, and once', () => {
  expect(parseWipe(undefined, state)).toEqual([])
  expect(parseWipe('identity,network,configuration,identity', state)).toEqual([
    'network',
    'configuration',
    'identity',
  ])
})

it('a configuration that names the state folder is not wiped: the trail would be lost with it', () => {
  expect(() => parseWipe('configuration', '/data/edgehostd')).toThrow(
    /^wipe has configuration, which names the state folder \/data\/edgehostd/,
  )
  expect(parseWipe('identity', '/data/edgehostd')).toEqual(['identity'])
})
