import { describe, expect, it } from 'vitest'
import { parsePointInTime } from '../../../src/ctl/given-values.ts'

const now = Date.parse('2026-01-31T09:30:15.250Z')

describe('a point in time', () => {
  // As `systemd-analyze timestamp` (252) reads them, in UTC; the last two are RFC 3339, which it does not take.
  it.each([
    ['now', '2026-01-31T09:30:15.250Z'],
    ['today', '2026-01-31T00:00:00.000Z'],
    ['yesterday', '2026-01-30T00:00:00.000Z'],
    ['tomorrow', '2026-02-01T00:00:00.000Z'],
    ['-2h', '2026-01-31T07:30:15.250Z'],
    ['-2 hours', '2026-01-31T07:30:15.250Z'],
    ['+1d', '2026-02-01T09:30:15.250Z'],
    ['2 hours ago', '2026-01-31T07:30:15.250Z'],
    ['1h 30min ago', '2026-01-31T08:00:15.250Z'],
    ['1h30m ago', '2026-01-31T08:00:15.250Z'],
    ['90 ago', '2026-01-31T09:28:45.250Z'],
    ['1 week ago', '2026-01-24T09:30:15.250Z'],
    ['2026-01-02', '2026-01-02T00:00:00.000Z'],
    ['2026-01-02 08:05', '2026-01-02T08:05:00.000Z'],
    ['2026-01-02 08:05:09', '2026-01-02T08:05:09.000Z'],
    ['2026-01-02 08:05:09 UTC', '2026-01-02T08:05:09.000Z'],
    ['08:05', '2026-01-31T08:05:00.000Z'],
    ['@1767340800', '2026-01-02T08:00:00.000Z'],
    ['2026-01-02T08:05:09.5Z', '2026-01-02T08:05:09.500Z'],
    ['2026-01-02t08:05:09+02:00', '2026-01-02T06:05:09.000Z'],
  ])('%j is %s', (text, time) => {
    expect(parsePointInTime('--since', text, now)).toBe(time)
  })

  it.each([
    '',
    'soon',
    'ago',
    '2 fortnights ago',
    '-',
    '-x',
    '2026-02-30',
    '2026-13-01',
    '25:00',
    '@x',
    '2026',
    ':',
    'Z',
  ])('%j is refused with the option and the accepted formats', (text) => {
    expect(() => parsePointInTime('--since', text, now)).toThrow(
      /^--since must be a time, for example .*; it is /,
    )
  })
})
