import { describe, expect, it } from 'vitest'
import { NoAnswer } from '../../../src/system/bus/failure.ts'
import { maxMessageBytes, messageLength, readMessage, writeCall } from '../../../src/system/bus/message.ts'
import { createReader, type BusValue } from '../../../src/system/bus/reader.ts'
import { parseSignature } from '../../../src/system/bus/signature.ts'
import { busReplies } from '../../fixtures/host/bus-replies.ts'

/** Bytes as the specification's tables are read: hexadecimal digits, and 'text' for its characters. */
function bytes(spelled: string): Buffer {
  const parts = spelled.match(/'[^']*'|[0-9a-f]{2}/g) ?? []
  return Buffer.concat(
    parts.map((part) => (part.startsWith("'") ? Buffer.from(part.slice(1, -1)) : Buffer.from(part, 'hex'))),
  )
}
const read = (signature: string, spelled: string, isLittleEndian = true): BusValue =>
  createReader(bytes(spelled), isLittleEndian).readAll(signature)[0]!

describe('a call', () => {
  it('is written as the specification lays out a message', () => {
    const hello = {
      service: 'org.freedesktop.DBus',
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      member: 'Hello',
    }
    const expected = bytes(`
      6c 01 02 01  00 00 00 00  01 00 00 00  6d 00 00 00
      01 01 'o' 00  15 00 00 00  '/org/freedesktop/DBus' 00  00 00
      02 01 's' 00  14 00 00 00  'org.freedesktop.DBus' 00  00 00 00
      03 01 's' 00  05 00 00 00  'Hello' 00  00 00
      06 01 's' 00  14 00 00 00  'org.freedesktop.DBus' 00  00 00 00`)
    expect(writeCall(hello, 1)).toEqual(expected)
  })

  it('carries its texts in the body, each at a multiple of four', () => {
    const call = { service: 'a.b', path: '/', interface: 'c.d', member: 'Get', texts: ['e.f', 'DNS'] }
    const expected = bytes(`
      6c 01 02 01  10 00 00 00  ff 00 01 00  48 00 00 00
      01 01 'o' 00  01 00 00 00  '/' 00  00 00 00 00 00 00
      02 01 's' 00  03 00 00 00  'c.d' 00  00 00 00 00
      03 01 's' 00  03 00 00 00  'Get' 00  00 00 00 00
      06 01 's' 00  03 00 00 00  'a.b' 00  00 00 00 00
      08 01 'g' 00  02 'ss' 00
      03 00 00 00 'e.f' 00  03 00 00 00 'DNS' 00`)
    expect(writeCall(call, 0x100ff).toString('hex')).toBe(expected.toString('hex'))
  })
})

describe('a value', () => {
  const values: [signature: string, little: string, big: string, value: BusValue][] = [
    ['y', 'ff', 'ff', 255],
    ['b', '01 00 00 00', '00 00 00 01', true],
    ['n', 'fe ff', 'ff fe', -2],
    ['q', '34 12', '12 34', 0x1234],
    ['i', 'fe ff ff ff', 'ff ff ff fe', -2],
    ['u', '78 56 34 12', '12 34 56 78', 0x12345678],
    ['h', '03 00 00 00', '00 00 00 03', 3],
    ['x', 'fe ff ff ff ff ff ff ff', 'ff ff ff ff ff ff ff fe', -2n],
    ['t', 'ff ff ff ff ff ff ff ff', 'ff ff ff ff ff ff ff ff', 2n ** 64n - 1n],
    ['d', '00 00 00 00 00 00 f8 3f', '3f f8 00 00 00 00 00 00', 1.5],
    ['s', "03 00 00 00 'foo' 00", "00 00 00 03 'foo' 00", 'foo'],
    ['s', '02 00 00 00 c3 bc 00', '00 00 00 02 c3 bc 00', '\u00fc'],
    ['o', "04 00 00 00 '/a/b' 00", "00 00 00 04 '/a/b' 00", '/a/b'],
    ['g', "05 'a{sv}' 00", "05 'a{sv}' 00", 'a{sv}'],
    // The example of the specification: an array of one 64-bit number is padded after its length.
    [
      'ax',
      '08 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00',
      '00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 05',
      [5n],
    ],
    ['ax', '00 00 00 00 00 00 00 00', '00 00 00 00 00 00 00 00', []],
    ['ay', '02 00 00 00 0a 0b', '00 00 00 02 0a 0b', Uint8Array.of(10, 11)],
    ['as', "06 00 00 00 01 00 00 00 'a' 00", "00 00 00 06 00 00 00 01 'a' 00", ['a']],
    ['(yu)', '01 00 00 00 02 00 00 00', '01 00 00 00 00 00 00 02', [1, 2]],
    ['v', "01 'u' 00 00 07 00 00 00", "01 'u' 00 00 00 00 00 07", { signature: 'u', value: 7 }],
    [
      'a{yv}',
      "0d 00 00 00 00 00 00 00  01 01 'q' 00 05 00 00 00  02 01 'y' 00 06",
      "00 00 00 0d 00 00 00 00  01 01 'q' 00 00 05 00 00  02 01 'y' 00 06",
      new Map<BusValue, BusValue>([
        [1, { signature: 'q', value: 5 }],
        [2, { signature: 'y', value: 6 }],
      ]),
    ],
  ]
  it.each(values)('of type %s is read in either byte order: %s', (signature, little, big, value) => {
    expect(read(signature, little)).toEqual(value)
    expect(read(signature, big, false)).toEqual(value)
  })

  it('begins where its alignment lets it, counted from the message', () => {
    expect(
      createReader(bytes('01 00 02 00 03 00 00 00 00 00 00 00 00 00 00 00 04'), true).readAll('yquay'),
    ).toEqual([1, 2, 3, new Uint8Array()])
    expect(
      createReader(bytes('01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00'), true).readAll('yt'),
    ).toEqual([1, 2n])
  })

  it.each([
    ['a number that ends too early', 'u', '01 00 00'],
    ['padding that is not zero', 'yu', '01 00 07 00 02 00 00 00'],
    ['a boolean of 2', 'b', '02 00 00 00'],
    ['a text longer than what is there', 's', "ff ff ff ff 'foo' 00"],
    ['a text without its zero', 's', "03 00 00 00 'fooo'"],
    ['a text with a zero inside', 's', "03 00 00 00 'f' 00 'o' 00"],
    ['a text that is not UTF-8', 's', '02 00 00 00 c3 28 00'],
    ['an object path that is none', 'o', "03 00 00 00 '/a/' 00"],
    ['an array longer than what is there', 'ay', 'ff ff ff 7f 00'],
    ['an array that ends within an element', 'au', '05 00 00 00 01 00 00 00 02 00 00 00'],
    ['a variant of no type', 'v', '00 00'],
    ['a variant of two types', 'v', "02 'yy' 00 01 02"],
    ['a variant of a type that is none', 'v', "01 'z' 00 01"],
    ['a signature that is none', 'g', "01 'a' 00"],
  ])('is refused: %s', (_, signature, spelled) => {
    expect(() => createReader(bytes(spelled), true).readAll(signature)).toThrow(NoAnswer)
  })

  it('may be a variant in a variant 32 deep, no deeper', () => {
    const nested = (depth: number) => `${"01 'v' 00 ".repeat(depth - 1)} 01 'y' 00 07`
    expect(JSON.stringify(read('v', nested(32)))).toContain('"value":7')
    expect(() => read('v', nested(33))).toThrow('deeper than 32')
    expect(() => read('v', nested(200_000))).toThrow('deeper than 32')
  })
})

describe('a signature', () => {
  it('may nest 32 deep, no deeper', () => {
    expect(parseSignature(`${'a'.repeat(32)}y`)).toHaveLength(1)
    expect(() => parseSignature(`${'a'.repeat(33)}y`)).toThrow('deeper than 32')
    expect(() => parseSignature(`${'('.repeat(33)}y${')'.repeat(33)}`)).toThrow('deeper than 32')
    expect(() => parseSignature(`${'a{s'.repeat(33)}y${'}'.repeat(33)}`)).toThrow('deeper than 32')
  })

  it.each([
    'a',
    '()',
    '(',
    ')',
    '(y',
    'y)',
    '{sv}',
    'a{vs}',
    'a{s}',
    'a{sss}',
    'a{(s)s}',
    'a{sv',
    'aa',
    '1',
    's ',
  ])('%j is none', (text) => {
    expect(() => parseSignature(text)).toThrow(NoAnswer)
  })

  it('has at most 255 characters', () => {
    expect(parseSignature('y'.repeat(255))).toHaveLength(255)
    expect(() => parseSignature('y'.repeat(256))).toThrow(NoAnswer)
  })
})

describe('a message', () => {
  it('of resolved is read', () => {
    const message = readMessage(busReplies.dns)
    expect([messageLength(busReplies.dns), message.type, message.replySerial]).toEqual([
      busReplies.dns.length,
      2,
      2,
    ])
    const [dns] = message.readBody() as [{ signature: string; value: BusValue[] }]
    expect(dns.signature).toBe('a(iiay)')
    expect(dns.value.slice(0, 3)).toEqual([
      [0, 2, Uint8Array.of(203, 0, 113, 1)],
      [2, 2, Uint8Array.of(203, 0, 113, 2)],
      [3, 10, Uint8Array.from(Buffer.from('20010db8000000000000000000000009', 'hex'))],
    ])
  })

  it('of timesyncd is read', () => {
    const [properties] = readMessage(busReplies.timesync).readBody() as readonly [
      ReadonlyMap<string, BusValue>,
    ]
    expect(properties.size).toBe(12)
    expect(properties.get('SystemNTPServers')).toEqual({ signature: 'as', value: ['a.example', '192.0.2.9'] })
    expect(properties.get('PollIntervalMaxUSec')).toEqual({ signature: 't', value: 10_921_000_000n })
    expect(properties.get('NTPMessage')).toMatchObject({ signature: '(uuuuittayttttbtt)' })
  })

  it('that is an error carries its name and text', () => {
    const message = readMessage(busReplies.unknownLink)
    expect([message.type, message.errorName, ...message.readBody()]).toEqual([
      3,
      'org.freedesktop.DBus.Error.UnknownObject',
      "Unknown object '/org/freedesktop/resolve1/link/_377'.",
    ])
  })

  const big = bytes(`
    42 02 01 01  00 00 00 08  00 00 00 09  00 00 00 0f
    05 01 'u' 00  00 00 00 07
    08 01 'g' 00  01 's' 00  00
    00 00 00 03 'foo' 00`)

  it('in big-endian order is read', () => {
    expect(messageLength(big)).toBe(big.length)
    const message = readMessage(big)
    expect([message.type, message.replySerial, message.readBody()]).toEqual([2, 7, ['foo']])
  })

  it('has no length while its first sixteen bytes are not there', () => {
    expect(messageLength(big.subarray(0, 15))).toBeUndefined()
    expect(messageLength(big.subarray(0, 16))).toBe(big.length)
  })

  const changed = (at: number, ...to: number[]) => {
    const copy = Buffer.from(big)
    copy.set(to, at)
    return copy
  }
  it.each([
    ['another byte order', changed(0, 0x78)],
    ['type 0', changed(1, 0)],
    ['another version', changed(3, 2)],
    ['serial 0', changed(8, 0, 0, 0, 0)],
  ])('is refused at its first bytes: %s', (_, message) => {
    expect(() => messageLength(message)).toThrow(NoAnswer)
  })

  it('is too large above 1 MiB, whatever makes it so', () => {
    const sized = (body: number, fields: number) => {
      const copy = Buffer.from(big)
      copy.writeUInt32BE(body, 4)
      copy.writeUInt32BE(fields, 12)
      return copy
    }
    expect(messageLength(sized(maxMessageBytes - 32, 16))).toBe(maxMessageBytes)
    for (const message of [sized(maxMessageBytes - 31, 16), sized(0, 2 ** 32 - 1), sized(2 ** 32 - 1, 0)]) {
      expect(() => messageLength(message)).toThrow(expect.objectContaining({ reason: 'too-large' }))
    }
  })

  it.each([
    ['a header field of another type', changed(18, 0x69)],
    ['header fields that end within one', changed(15, 0x0d)],
    ['a body of another length than it says', changed(7, 4)],
  ])('is refused in its header: %s', (_, message) => {
    expect(() => readMessage(message)).toThrow(NoAnswer)
  })

  it('is refused where its body has more than its signature', () => {
    expect(() => readMessage(changed(26, 0)).readBody()).toThrow(NoAnswer)
    const longer = Buffer.concat([big, Buffer.alloc(4)])
    longer.writeUInt32BE(12, 4)
    expect(() => readMessage(longer).readBody()).toThrow('another length')
  })

  it('of any bytes is read or refused, in bounded time', () => {
    // A small generator of its own, so that a failure can be repeated (Numerical Recipes' LCG).
    let seed = 20_261_121
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    const sources = [busReplies.dns, busReplies.timesync, busReplies.unknownLink, big]
    const outcomes = { read: 0, refused: 0 }
    for (let round = 0; round < 20_000; round += 1) {
      const source = sources[random(sources.length)]!
      const mutated = random(8) === 0 ? Buffer.alloc(source.length) : Buffer.from(source)
      for (let changes = random(6) + 1; changes > 0; changes -= 1)
        mutated[random(mutated.length)] = random(256)
      try {
        const length = messageLength(mutated)
        readMessage(mutated.subarray(0, length)).readBody()
        outcomes.read += 1
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error
        outcomes.refused += 1
      }
    }
    expect(outcomes.read).toBeGreaterThan(1_000)
    expect(outcomes.refused).toBeGreaterThan(1_000)
  })
})
