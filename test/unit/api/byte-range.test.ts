import { expect, it } from 'vitest'
import { parseRange } from '../../../src/api/send-file.ts'

it.each([
  ['bytes=0-0', { start: 0, end: 0 }],
  ['bytes=2-5', { start: 2, end: 5 }],
  ['bytes=2-', { start: 2, end: 9 }],
  ['bytes=2-99', { start: 2, end: 9 }],
  ['bytes=-3', { start: 7, end: 9 }],
  ['bytes=-99', { start: 0, end: 9 }],
  ['Bytes= 2-5 ', { start: 2, end: 5 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=10-20', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
])('%s of 10 bytes is a range', (field, expected) => {
  expect(parseRange(field, 10)).toEqual(expected)
})

it.each([
  undefined,
  '',
  'bytes',
  'bytes=',
  'bytes=-',
  'bytes=5-2',
  'bytes=a-b',
  'bytes=1-2,4-5',
  'bytes=--1',
  'bytes=1',
  'bytes=1.5-2',
  'lines=1-2',
  `bytes=${'9'.repeat(400)}-`,
])('%j stands for the whole file', (field) => {
  expect(parseRange(field, 10)).toBeUndefined()
})

it('of an empty file no range can be sent', () => {
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('bytes=-1', 0)).toBe('unsatisfiable')
  expect(parseRange(undefined, 0)).toBeUndefined()
})
