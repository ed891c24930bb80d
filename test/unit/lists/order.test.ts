import { describe, expect, it } from 'vitest'
import { defaultOrder, parseOrder } from '../../../src/lists/filter.ts'
import { memoryThings } from '../../support/list-data.ts'

const read = (text: string) => parseOrder(text, memoryThings).map(({ path, direction }) => [path, direction])

describe('orderBy', () => {
  it.each([
    [
      'ends with the key, in the direction of the last path',
      'spec.kind=1,spec.size=-1',
      [
        ['spec.kind', 1],
        ['spec.size', -1],
        ['metadata.seq', -1],
      ],
    ],
    ['keeps the key where it stands', 'metadata.seq=-1', [['metadata.seq', -1]]],
    ['leaves out what stands behind the key', 'metadata.seq=1,spec.kind=-1', [['metadata.seq', 1]]],
  ])('an order %s', (_what, text, expected) => {
    expect(read(text)).toEqual(expected)
  })

  it.each([
    ['a path that is not declared', 'spec.colour=1'],
    ['a path that may only be filtered by', 'spec.text=1'],
    ['a path of every object', '__proto__=1'],
    ['SQL for a path', 'seq; DROP TABLE thing=1'],
    ['another order than 1 and -1', 'spec.kind=2'],
    ['SQL for an order', 'spec.kind=1 DESC'],
    ['no order', 'spec.kind'],
    ['a term without anything', 'spec.kind=1,'],
    ['a path twice', 'spec.kind=1,spec.kind=-1'],
    ['six paths', 'metadata.name=1,metadata.at=1,spec.kind=1,spec.size=1,spec.isOn=1,metadata.seq=1'],
  ])('an order with %s is refused, naming orderBy', (_what, text) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'BadRequest', details: expect.objectContaining({ field: 'orderBy' }) }),
    )
  })

  it('without orderBy the order is that of the resource, or its key alone', () => {
    expect(defaultOrder(memoryThings)).toEqual([
      { path: 'metadata.at', direction: -1 },
      { path: 'metadata.seq', direction: -1 },
    ])
    expect(defaultOrder({ name: 'x', key: 'uid', fields: { uid: { type: 'text' } } })).toEqual([
      { path: 'uid', direction: 1 },
    ])
  })
})
