import { describe, expect, it } from 'vitest'
import { hostsWith, problemOfHostName } from '../../../src/setup/rules.ts'

describe('a host name', () => {
  it.each(['line-7', 'a', 'y', 'no', '7-east', 'line-7.plant.example', 'a'.repeat(63)])('%s is one', (name) =>
    expect(problemOfHostName(name)).toBeUndefined(),
  )

  it.each([
    ['', 'is empty'],
    ['Line-7', 'write it as line-7'],
    ['a'.repeat(64), 'labels of 1 to 63'],
    [`${'a'.repeat(32)}.${'b'.repeat(32)}`, 'longer than 64'],
    ['line_7', 'is no name'],
    ['Line_7', 'is no name'],
    ['-line', 'is no name'],
    ['line-', 'is no name'],
    ['line..7', 'is no name'],
    ['line 7', 'is no name'],
    ['line\n7', 'is no name'],
    ['192.0.2.7', 'digits only'],
    ['7', 'digits only'],
    ['localhost', 'every host'],
    ['localhost.localdomain', 'every host'],
    ['zürich', 'is no name'],
  ])('%j is refused', (name, reason) => expect(problemOfHostName(name)).toContain(reason))
})

describe('/etc/hosts with a new name', () => {
  it.each([
    [
      'replaces the old one, and aliases stay',
      '127.0.0.1\tlocalhost\n127.0.1.1\told.plant.example old mes # the plant\n192.0.2.1 old-gateway\n',
      '127.0.0.1\tlocalhost\n127.0.1.1\tline-7 mes # the plant\n192.0.2.1 old-gateway\n',
    ],
    [
      'gets a line below that of localhost where there is none',
      '# hosts\n127.0.0.1 localhost\n::1 localhost\n',
      '# hosts\n127.0.0.1 localhost\n127.0.1.1\tline-7\n::1 localhost\n',
    ],
    ['stays where another line has the name', '192.0.2.7 line-7\n', '192.0.2.7 line-7\n'],
    ['is made where it is empty', '', '127.0.1.1\tline-7\n'],
    [
      'keeps the ends of its lines',
      '127.0.0.1 localhost\r\n127.0.1.1 old # here\r\n192.0.2.1\tgw\r\n',
      '127.0.0.1 localhost\r\n127.0.1.1\tline-7 # here\r\n192.0.2.1\tgw\r\n',
    ],
    [
      'gets a line like the others',
      '127.0.0.1 localhost\r\n::1 localhost\r\n',
      '127.0.0.1 localhost\r\n127.0.1.1\tline-7\r\n::1 localhost\r\n',
    ],
    [
      'replaces the old name where it stands, also in capitals',
      '127.0.1.1 mes # old\n127.0.1.1\tOLD.Plant.example\tOld\tscada_1 mes.\n#127.0.1.1 old\n',
      '127.0.1.1 mes # old\n127.0.1.1\tline-7 scada_1 mes.\n#127.0.1.1 old\n',
    ],
    ['stays where another line has the name in capitals', 'fe80::1%eth0\tLINE-7\n', 'fe80::1%eth0\tLINE-7\n'],
    ['stays as it is the second time', '127.0.1.1\tline-7 mes\n', '127.0.1.1\tline-7 mes\n'],
  ])('%s', (_, text, expected) => {
    expect(hostsWith(text, 'old', 'line-7')).toBe(expected)
    expect(hostsWith(expected, 'line-7', 'line-7')).toBe(expected)
  })

  it('has the whole name first, and the short one', () => {
    expect(hostsWith('127.0.1.1 old\n', 'old', 'line-7.plant.example')).toBe(
      '127.0.1.1\tline-7.plant.example line-7\n',
    )
    expect(hostsWith('127.0.1.1 other\n', '', 'line-7')).toBe('127.0.1.1\tline-7 other\n')
  })
})
