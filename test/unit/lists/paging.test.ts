import { describe, expect, it } from 'vitest'
import { listInMemory } from '../../../src/lists/memory.ts'
import type { ListParameters } from '../../../src/lists/query.ts'
import { ask, createThings, memoryThings, toItem, type Thing } from '../../support/list-data.ts'
import { createRandom, type Random } from '../../support/random.ts'

// Few values, so that many are equal; and such that quoting, bytes and words of the grammar matter.
const words = [
  '',
  'a',
  'A',
  'b"c',
  '\\',
  'xANDspec.kind=y',
  'OR',
  '\uffff',
  '\u{1f600}',
  'é',
  "'",
  '%',
  '\0',
  'a\0',
]

const createThing = (random: Random, seq: number): Thing => ({
  seq,
  name: random.pick(words),
  kind: random.pick(words.slice(0, 4)),
  size: random.below(4) - 1,
  isOn: random.isChosen(0.5),
  at: random.below(5) * 86_400_000,
})

const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

function createFilter(random: Random): string {
  const conditions = [
    () => `metadata.name=${quote(random.pick(words))}`,
    () => `spec.kind=${quote(random.pick(words.slice(0, 4)))}`,
    () => `spec.size=${random.below(4) - 1}`,
    () => `spec.isOn=${random.isChosen(0.5)}`,
    () => `metadata.at=${new Date(random.below(5) * 86_400_000).toISOString()}`,
    () => `metadata.seq=${random.below(100)}`,
  ]
  return Array.from({ length: random.below(5) }, (_none, index) => {
    const word = index === 0 ? '' : random.pick(['AND', 'OR', 'OR'])
    return word + random.pick(conditions)()
  }).join('')
}

const createOrder = (random: Random): string =>
  random
    .several(
      ['metadata.name', 'metadata.at', 'spec.kind', 'spec.size', 'spec.isOn', 'metadata.seq'],
      random.below(4),
    )
    .map((path) => `${path}=${random.pick([1, -1])}`)
    .join(',')

/** Things in SQLite and in memory, always the same ones. */
function createBoth(random: Random, size: number) {
  const stored = createThings()
  const things = new Map<number, Thing>()
  let lastSeq = 0
  const add = () => {
    // Not always behind the others: new ones come everywhere in an order.
    lastSeq += 1
    const thing = createThing(random, random.isChosen(0.5) ? lastSeq : -lastSeq)
    things.set(thing.seq, thing)
    stored.insert(thing)
  }
  const remove = (seq: number) => {
    things.delete(seq)
    stored.remove(seq)
  }
  for (let count = 0; count < size; count += 1) add()
  return {
    things,
    add,
    remove,
    removeAny: () => remove(random.pick([...things.keys()])),
    async page(parameters: ListParameters) {
      const inMemory = listInMemory([...things.values()], ask(parameters), memoryThings, toItem)
      const inSqlite = await stored.list.page(ask(parameters))
      return { inMemory, inSqlite }
    },
  }
}

describe('paging', () => {
  it.each(Array.from({ length: 120 }, (_none, seed) => seed))(
    'paging shows each item once while others are added and removed, in SQLite as in memory (seed %i)',
    async (seed) => {
      const random = createRandom(seed)
      const both = createBoth(random, random.below(90))
      const parameters = { filters: createFilter(random), orderBy: createOrder(random) }
      const seqsOf = (all: ReturnType<typeof listInMemory<Thing, ReturnType<typeof toItem>>>) =>
        all.items.map(({ metadata }) => metadata?.seq)
      const all = listInMemory(
        [...both.things.values()],
        { ...ask(parameters), limit: 1_000 },
        memoryThings,
        toItem,
      )
      const here = new Set(seqsOf(all))
      const seen: unknown[] = []
      let token = ''
      do {
        const limit = random.below(7) + 1
        const { inMemory, inSqlite } = await both.page({ ...parameters, limit, continue: token })
        expect(inSqlite).toEqual(inMemory)
        expect(inMemory.listmeta.offset).toBe(seen.length + inMemory.items.length)
        seen.push(...seqsOf(inMemory))
        token = inMemory.listmeta.continue
        if (random.isChosen(0.5)) both.add()
        // The last item of the page may be the one that goes.
        if (both.things.size > 0 && random.isChosen(0.5)) both.removeAny()
      } while (token !== '')
      expect(new Set(seen).size).toBe(seen.length)
      const remaining = [...here].filter((seq) => both.things.has(Number(seq)))
      expect(seen).toEqual(expect.arrayContaining(remaining))
    },
  )

  it('a list continues when the last item of the page is removed', async () => {
    const both = createBoth(createRandom(1), 30)
    const first = await both.page({ limit: 10 })
    const last = first.inMemory.items.at(-1)?.metadata?.seq ?? Number.NaN
    const before = await both.page({ limit: 20, continue: first.inMemory.listmeta.continue })
    both.remove(last)
    expect(both.things.size).toBe(29)
    const after = await both.page({ limit: 20, continue: first.inMemory.listmeta.continue })
    expect(after.inMemory.items).toEqual(before.inMemory.items)
    expect(after.inSqlite).toEqual(after.inMemory)
  })

  it('a list by offset begins at this index, in SQLite as in memory, also behind the end', async () => {
    const random = createRandom(7)
    const both = createBoth(random, 60)
    const everything = await both.page({ limit: 50, orderBy: 'spec.kind=1' })
    for (const offset of [0, 1, 49, 59, 60, 61, 1_000]) {
      const { inMemory, inSqlite } = await both.page({ limit: 5, offset, orderBy: 'spec.kind=1' })
      expect(inSqlite).toEqual(inMemory)
      if (offset <= 45) expect(inMemory.items).toEqual(everything.inMemory.items.slice(offset, offset + 5))
      expect(inMemory.listmeta.offset).toBe(offset + inMemory.items.length)
      expect(inMemory.listmeta.count).toBe(60)
    }
  })

  it('a list ends with an empty token exactly at the last item', async () => {
    const both = createBoth(createRandom(3), 20)
    const { inMemory } = await both.page({ limit: 10 })
    const { inMemory: last } = await both.page({ limit: 10, continue: inMemory.listmeta.continue })
    expect(inMemory.listmeta).toMatchObject({
      count: 20,
      limit: 10,
      offset: 10,
      continue: expect.stringMatching(/./),
    })
    expect(last.listmeta).toEqual({ count: 20, limit: 10, offset: 20, continue: '' })
  })

  it('a list keeps only the named fields of each item', async () => {
    const both = createBoth(createRandom(4), 3)
    const { inMemory, inSqlite } = await both.page({ fields: 'metadata.seq,spec.kind' })
    expect(inSqlite).toEqual(inMemory)
    expect(
      inMemory.items.map((item) => [Object.keys(item.metadata ?? {}), Object.keys(item.spec ?? {})]),
    ).toEqual(Array.from({ length: 3 }, () => [['seq'], ['kind']]))
  })
})
