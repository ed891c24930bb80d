import { expect, it } from 'vitest'
import { chooseVersion, newestVersion } from '../../../src/definition/read/choose-version.ts'

it.each([
  ['one number is higher', ['2.0.9', '2.0.10', '2.0.2'], '2.0.10'],
  ['one number is more', ['1.2', '1.2.1'], '1.2.1'],
  ['one is no release yet', ['2.0.1-rc.10', '2.0.1', '2.0.1-rc.9'], '2.0.1'],
  ['both are no release yet', ['2.0.1-rc.9', '2.0.1-rc.10'], '2.0.1-rc.10'],
  ['one was built again', ['2.0.1', '2.0.1+build2'], '2.0.1+build2'],
  ['one has a letter before it', ['v1.2.0', '1.1.0'], 'v1.2.0'],
  ['both mean the same', ['1.2.0', '1.2'], '1.2.0'],
  ['one has no number', ['stable', '0.1'], '0.1'],
  ['there is one', ['a'], 'a'],
])('the newest version where %s', (_, versions, newest) => {
  expect(newestVersion(versions)).toBe(newest)
  expect(newestVersion([...versions].reverse())).toBe(newest)
})

it('there is no newest of none', () => {
  expect(newestVersion([])).toBeUndefined()
})

const present = ['2.0.0', '2.0.1', '2.1.0']
it.each([
  ['a version', '2.0.0', '', '2.0.0'],
  ['a version that is not there', '3.0.0', '', '3.0.0'],
  ['a tag', '2.0.x', '', '2.0.1'],
  ['a tag, with the version of the export', '2.0.x', '2.0.0', '2.0.0'],
  ['a tag, with a version of the export that is not there', '2.0.x', '2.0.7', '2.0.1'],
  ['a tag that none fits', '3.x', '', '3.x'],
  ['no tag', '', '', '2.1.0'],
  ['no tag, with the version of the export', '', '2.0.0', '2.0.0'],
])('%s means the newest that fits, where that is asked for', (_, tag, version, meant) => {
  expect(chooseVersion(tag, version, present, newestVersion)).toBe(meant)
})

it('a tag that several fit means none of them without that', () => {
  expect(chooseVersion('2.0.x', '', present)).toBe('2.0.x')
  expect(chooseVersion('2.1.x', '', present)).toBe('2.1.0')
})
