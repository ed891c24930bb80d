import { describe, expect, it } from 'vitest'
import { describeImage } from '../../../src/images/runtimes/describe.ts'
import { readElements } from '../../../src/images/runtimes/json-elements.ts'
import { bytesOf, readFields, textOf, writeNumber, writeText } from '../../../src/images/runtimes/wire.ts'
import { createLayout } from '../../support/layouts.ts'

const limits = { maximumBytes: 10_000, elementBytes: 1_000 }

async function elements(text: string, pieceBytes = 1_000, some: Partial<typeof limits> = {}) {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes))
  const found: unknown[] = []
  for await (const element of readElements(pieces, { ...limits, ...some })) found.push(element)
  return found
}

describe('a list of JSON', () => {
  const list = [{ a: '}],{"\\', b: [1, [2, { c: '€' }]] }, {}, { d: null, e: { f: ['"'] } }]

  it('is read element by element, wherever the pieces end', async () => {
    for (const text of [
      JSON.stringify(list),
      JSON.stringify(list, null, 2),
      ` \n${JSON.stringify(list)}\r\n`,
    ])
      for (let bytes = 1; bytes <= 70; bytes += 1) expect(await elements(text, bytes)).toEqual(list)
    expect(await elements('[]')).toEqual([])
  })

  it.each([
    ['', 'it is cut off'],
    ['[{"a":1}', 'it is cut off'],
    ['[{"a":1', 'it is cut off'],
    ['{"a":[]}', 'it is not a list'],
    ['null', 'it is not a list of objects'],
    ['["a"]', 'it is not a list of objects'],
    ['[1]', 'it is not a list of objects'],
    ['[]]', 'is'],
    ['[] []', 'something follows the list'],
    ['[{a:1}]', 'JSON'],
    ['[{"a":1]]', 'JSON'],
  ])('%s is refused', async (text, message) => {
    await expect(elements(text)).rejects.toThrow(message)
  })

  it('that is too long, or has an element that is, is refused', async () => {
    await expect(elements(JSON.stringify(list), 10, { maximumBytes: 20 })).rejects.toThrow(
      'more than 20 bytes',
    )
    await expect(elements(JSON.stringify(list), 10, { elementBytes: 20 })).rejects.toThrow(
      'more than 20 bytes',
    )
  })
})

describe('the wire format', () => {
  it('what is written is read', () => {
    const text = 'ü'.repeat(200)
    const message = Buffer.concat([writeText(1, text), writeNumber(3, 2 ** 40 + 5), writeText(200, '')])
    const fields = [...readFields(message)]
    expect(fields.map(({ number }) => number)).toEqual([1, 3, 200])
    expect(fields.map(textOf)).toEqual([text, '', ''])
    expect(fields[1]?.value).toBe(2 ** 40 + 5)
    expect(fields.map((field) => bytesOf(field).length)).toEqual([400, 0, 0])
  })

  it('fields of other types are left out, and what is no message is refused', () => {
    const fixed = Buffer.from([0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x0d, 1, 2, 3, 4, 0x10, 7])
    expect([...readFields(fixed)]).toEqual([{ number: 2, value: 7 }])
    for (const bytes of [[0x0a, 5, 1], [0x0a], [0x80], [0x0b], [0x09, 1], Array<number>(20).fill(0xff)])
      expect(() => [...readFields(Buffer.from(bytes))]).toThrow(/message/)
  })

  it('random bytes are read or refused', () => {
    for (let seed = 1; seed < 3_000; seed += 1) {
      const bytes = Buffer.from(
        Array.from({ length: seed % 40 }, (_, at) => (seed * 7_919 + at * at * 31) % 256),
      )
      try {
        for (const field of readFields(bytes)) expect(field.number).toBeGreaterThanOrEqual(0)
      } catch (error) {
        expect((error as Error).name).toBe('WireError')
      }
    }
  })
})

describe('the description of an image', () => {
  it('is missing where its document is missing, damaged or none', async () => {
    const layout = createLayout()
    const documents = ['', '{', 'null', '[]', '{"layers":[]}', '{"config":{"digest":1},"layers":[]}'].map(
      (text) => layout.put(text, 'application/json'),
    )
    const read = async (named: string) => layout.blobs.get(named.slice(7))
    for (const { digest } of documents) expect(await describeImage(digest, read)).toBeUndefined()
    expect(await describeImage(`sha256:${'0'.repeat(64)}`, read)).toBeUndefined()
  })

  it('has no image id where several platforms are here, and counts a shared layer once', async () => {
    const layout = createLayout()
    const children = ['amd64', 'arm64'].map((architecture) =>
      layout.image({ architecture, layers: ['shared'], more: { platform: { os: 'linux', architecture } } }),
    )
    const index = layout.index(children)
    const total = [...layout.blobs.values()].reduce((sum, { length }) => sum + length, 0)
    expect(await describeImage(index.digest, async (named) => layout.blobs.get(named.slice(7)))).toEqual({
      sizeBytes: total,
      platforms: [
        { os: 'linux', architecture: 'amd64' },
        { os: 'linux', architecture: 'arm64' },
      ],
    })
  })
})
