import { isIPv4, isIPv6 } from 'node:net'
import { describe, expect, it } from 'vitest'
import { findFormat } from '../../../../src/definition/rules/formats.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { createRandom } from '../../../support/random.ts'

const takes = (format: string, value: string) => findFormat(format)?.accepts(value)

const tables: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['string', ['', ' ', 'anything: at all\n', '\u{1F600}', '\ud800'], []],
  [
    'number',
    ['0', '-0', '+7', '8080', '-0.5', '.5', '1e5', '1E-7', '1.5e+10', '-.5', '9007199254740993', '1e308'],
    [
      ...[
        '',
        ' 1',
        '1 ',
        '1\n',
        'abc',
        '1,5',
        '1_000',
        '0x10',
        '0b1',
        '0o7',
        '007',
        '1.',
        '1.e5',
        '010',
        '-01',
        '1e',
        'e5',
        '.',
        '-',
      ],
      ...['+-1', '1.2.3', 'NaN', 'Infinity', '-inf', '1e309', '\u0661\u0662', '\uff11', '1f', '1e5.0', '--1'],
    ],
  ],
  ['boolean', ['true', 'false'], ['True', 'TRUE', 'yes', 'on', '1', '0', '', ' true', 'true\n', 't']],
  [
    'version',
    [
      ...[
        '0.0.0',
        '1.2.3',
        '10.20.30',
        '1.0.0-alpha',
        '1.0.0-alpha.1',
        '1.0.0-0.3.7',
        '1.0.0-x.7.z.92',
        '1.0.0--',
      ],
      ...[
        '1.0.0+20130313144700',
        '1.0.0-beta+exp.sha.5114f85',
        '1.0.0+21AF26D3---117B344092BD',
        '1.0.0-0A.is.legal',
      ],
      '99999999999999999999999.999999999999999999.99999999999999999',
    ],
    [
      ...[
        '',
        '1',
        '1.2',
        '1.2.3.4',
        'v1.2.3',
        '01.2.3',
        '1.02.3',
        '1.2.03',
        '1.2.3-',
        '1.2.3+',
        '1.2.3-01',
        '1.2.3-a..b',
      ],
      ...['1.2.3-a_b', '1.2.3+a+b', ' 1.2.3', '1.2.3\n', '1.2.-3', '\u0661.2.3', '1.0.0-0.3.07'],
    ],
  ],
  [
    'ipv4',
    ['0.0.0.0', '255.255.255.255', '192.0.2.1', '10.0.0.99'],
    [
      ...[
        '',
        '256.0.0.1',
        '1.2.3',
        '1.2.3.4.5',
        '01.2.3.4',
        '1.2.3.04',
        '00.0.0.0',
        '1.2.3.4/24',
        ' 1.2.3.4',
        '1.2.3.4\n',
      ],
      ...[
        '0x7f.0.0.1',
        '1.2.3.-4',
        '1.2.3.',
        '.1.2.3',
        '1..2.3',
        '::1',
        '\u0661.2.3.4',
        '127.1',
        '2130706433',
      ],
    ],
  ],
  [
    'ipv4cidr',
    // Host bits may be set: it is then an address in its network.
    ['0.0.0.0/0', '10.0.0.0/8', '192.168.1.10/24', '192.0.2.1/32'],
    [
      ...[
        '',
        '10.0.0.0',
        '10.0.0.0/',
        '10.0.0.0/33',
        '10.0.0.0/08',
        '10.0.0.0/-1',
        '10.0.0.0/8/8',
        '10.0.0/8',
        '/8',
      ],
      ...['10.0.0.0/255.0.0.0', '010.0.0.0/8', '10.0.0.0 /8', '2001:db8::/32', '10.0.0.0/8\n', '10.0.0.0/+8'],
    ],
  ],
  [
    'ipv6',
    [
      ...[
        '::',
        '::1',
        '1::',
        '2001:db8::1',
        '1:2:3:4:5:6:7:8',
        '1:2:3:4:5:6:7::',
        '::2:3:4:5:6:7:8',
        'FE80::ABCD',
      ],
      ...[
        '::ffff:192.0.2.1',
        '64:ff9b::192.0.2.33',
        '1:2:3:4:5:6:1.2.3.4',
        '0000:0000:0000:0000:0000:0000:255.255.255.255',
      ],
    ],
    [
      ...[
        '',
        ':',
        ':::',
        '1',
        '1:2:3:4:5:6:7',
        '1:2:3:4:5:6:7:8:9',
        '1:2:3:4:5:6:7:8::',
        '1::2::3',
        '12345::',
        'g::',
        '1:',
      ],
      ...[
        'fe80::1%eth0',
        '::1/128',
        '[::1]',
        '::1.2.3',
        '::256.0.0.1',
        '1.2.3.4',
        '1.2.3.4::',
        '::01.2.3.4',
        ' ::1',
        '::1\n',
      ],
      ...['1:2:3:4:5:6:7:1.2.3.4', ':1:2:3:4:5:6:7:8', '::1.2.3.4:5', '\uff11::'],
    ],
  ],
  [
    'base64',
    ['', 'QQ==', 'QUI=', 'QUJD', '+/+/', 'QUJD\nQUJD\r\n', 'QR=='],
    ['Q', 'QQ', 'QQ=', 'QQ===', '====', 'Q===', 'QQ==QQ==', '-_-_', 'QU I=', 'QUJ\u00c9', '=QUJ', 'QU=D'],
  ],
]

describe('a format', () => {
  for (const [format, good, bad] of tables) {
    it.each(good.map((value) => [value]))(`the format ${format} accepts %j`, (value) => {
      expect(takes(format, value)).toBe(true)
    })
    if (bad.length === 0) continue
    it.each(bad.map((value) => [value]))(`the format ${format} refuses %j`, (value) => {
      expect(takes(format, value)).toBe(false)
    })
  }

  it('a format is found in any case, and without one it is string', () => {
    expect(findFormat('IPv4CIDR')).toBe(findFormat('ipv4cidr'))
    expect(findFormat('Boolean')?.kind).toBe('boolean')
    expect(findFormat(undefined)).toBe(findFormat('STRING'))
    expect(findFormat('')).toBe(findFormat('string'))
    expect(findFormat('int')).toBeUndefined()
    expect(findFormat('__proto__')).toBeUndefined()
  })

  it('the formats of addresses accept what the operating system accepts, except zones', () => {
    const random = createRandom(7)
    const parts = [
      '0',
      '1',
      '255',
      '256',
      '01',
      'ffff',
      '10000',
      'a',
      '',
      ':',
      '::',
      '.',
      '.',
      '.',
      ':',
      ':',
      ':',
      '9',
      'F',
    ]
    const wrong: string[] = []
    let good = 0
    for (let round = 0; round < 100_000; round += 1) {
      const text = random.text(parts, 1 + random.below(17))
      if (takes('ipv4', text) !== isIPv4(text) || takes('ipv6', text) !== isIPv6(text)) wrong.push(text)
      if (isIPv4(text) || isIPv6(text)) good += 1
    }
    expect(wrong).toEqual([])
    expect(good).toBeGreaterThan(500)
  })

  it.each([
    ['version', `1.0.0-${'1'.repeat(60_000)}!`],
    ['version', `1.0.0-${'1.'.repeat(30_000)}!`],
    ['number', `${'1'.repeat(60_000)}e`],
    ['base64', `${'Q'.repeat(60_000)}!!!!`],
    ['ipv6', ':'.repeat(60_000)],
    ['ipv4cidr', '1'.repeat(60_000)],
  ])('the format %s refuses a long value in linear time', (format, value) => {
    const begin = cpuNow()
    expect(takes(format, value)).toBe(false)
    expect(cpuNow() - begin).toBeLessThan(500)
  })

  it('ipv4cidr accepts each prefix length from 0 to 32 and no other', () => {
    const lengths = Array.from({ length: 130 }, (_, length) => length)
    expect(lengths.filter((length) => takes('ipv4cidr', `10.0.0.0/${length}`))).toEqual(lengths.slice(0, 33))
  })
})
