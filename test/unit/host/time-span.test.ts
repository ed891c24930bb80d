import { expect, it } from 'vitest'
import { parseTimeSpan } from '../../../src/host/time/ntp.ts'

it.each([
  ['2048', 2048],
  ['5s', 5],
  ['34min 8s', 2048],
  ['1min 4s', 64],
  ['500ms', 0.5],
  ['5.500s', 5.5],
  ['0.1s 0.2s', 0.3],
  ['55s500ms', 55.5],
  ['2 h', 7_200],
  ['2hours', 7_200],
  ['48hr', 172_800],
  ['1y 12month', 31_557_600 + 12 * 2_629_800],
  ['1M 1m', 2_629_860],
  ['300ms20s 5day', 432_020.3],
  ['3 µs', 0.000003],
  ['.5', 0.5],
  ['+5', 5],
  ['1h 2', 3_602],
  ['0', 0],
])('the time span %j is %d s', (text, seconds) => {
  expect(parseTimeSpan(text)).toBe(seconds)
})

it.each(['', ' ', 'infinity', '5 parsecs', '5S', 's', '1..5s', '-5s', '5s,', '5 constructor'])(
  '%j is no time span',
  (text) => {
    expect(parseTimeSpan(text)).toBeUndefined()
  },
)
