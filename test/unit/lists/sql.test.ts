import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { compareValues } from '../../../src/lists/memory.ts'
import { createStatements } from '../../../src/lists/sql.ts'
import { ask, createThings, sqlThings, type Thing } from '../../support/list-data.ts'

const statements = createStatements(sqlThings, { table: 'thing', columns: 'seq' })
const thing = (seq: number, name = 'n'): Thing => ({
  seq,
  name,
  kind: 'k',
  size: 1,
  isOn: true,
  at: seq * 1_000,
})

describe('the statement of a page', () => {
  it('a query contains columns, operators and marks; every value is bound', () => {
    const { sql, values } = statements.page(
      ask({
        filters: `spec.kind="' OR 1=1 --"ANDspec.size=3ORmetadata.name=x`,
        orderBy: 'spec.size=-1',
        offset: 7,
        limit: 5,
      }),
      { sql: 'at >= ?', values: [9] },
    )
    expect(sql).toBe(
      'SELECT seq, size FROM thing WHERE (at >= ?) AND (+kind = ? AND +size = ? OR +name = ?) ' +
        'ORDER BY size DESC, seq DESC LIMIT ? OFFSET ?',
    )
    expect(values).toEqual([9, "' OR 1=1 --", 3, 'x', 6, 7])
  })

  it('a query finds the place behind the token by an index, also with different directions', () => {
    const { sql } = createThings()
    for (const orderBy of ['metadata.at=-1', 'metadata.at=1,metadata.seq=-1']) {
      const query = ask({ orderBy, continue: ask({ orderBy }).tokenAfter([1, 2], 50) })
      const page = statements.page(query)
      const plan = sql.prepare(`EXPLAIN QUERY PLAN ${page.sql}`).all(...page.values)
      expect(JSON.stringify(plan), orderBy).toMatch(/SEARCH thing USING (COVERING )?INDEX thing_at/)
    }
  })

  it('the query of the count has the same conditions, without place and order', () => {
    const query = ask({ filters: 'spec.kind=a', orderBy: 'spec.size=1', offset: 3 })
    expect(statements.count(query)).toEqual({
      sql: 'SELECT count(*) AS count FROM thing WHERE (kind = ?)',
      values: ['a'],
    })
  })
})

describe('what is long in a column', () => {
  const at = { 'spec.facts.disks': '$.facts.disks', 'spec.facts.nics': '$.facts.nics' }
  const heavy = Object.fromEntries(
    Object.entries(at).map(([path, part]) => [path, { column: 'spec', at: part }]),
  )
  const { page } = createStatements({ ...sqlThings, heavy }, { table: 'thing', columns: 'seq, spec' })
  const sql = new DatabaseSync(':memory:')
  const spec = '{"facts":{"disks":[{"size":9007199254740993}],"nics":[1],"cores":4},"kind":"k"}'
  sql.exec(`CREATE TABLE thing (seq INTEGER PRIMARY KEY, at INTEGER, spec TEXT NOT NULL)`)
  sql.prepare('INSERT INTO thing VALUES (1, 0, ?)').run(spec)

  it.each([
    [undefined, '{"facts":{"cores":4},"kind":"k"}'],
    ['metadata.name', '{"facts":{"cores":4},"kind":"k"}'],
    ['spec.facts.cores', '{"facts":{"cores":4},"kind":"k"}'],
    ['spec.facts.nics', '{"facts":{"nics":[1],"cores":4},"kind":"k"}'],
    ['spec.facts.disks.size', '{"facts":{"disks":[{"size":9007199254740993}],"cores":4},"kind":"k"}'],
    ['spec.facts', spec],
    ['spec', spec],
  ])('is not read where the fields are %s, unless they name it', (fields, read) => {
    const { sql: text, values } = page(ask(fields === undefined ? {} : { fields }))
    expect(sql.prepare(text).all(...values)).toMatchObject([{ seq: 1, spec: read }])
  })

  it('is in a column that the list has', () => {
    expect(() => createStatements({ ...sqlThings, heavy }, { table: 'thing', columns: 'seq' })).toThrow(
      'the list of things has no column spec',
    )
  })
})

describe('a list of SQLite rows', () => {
  const attacks = [
    `' OR '1'='1`,
    `x'; DROP TABLE thing; --`,
    `" OR ""="`,
    `?1`,
    `:name`,
    `%`,
    `_`,
    `\\`,
    `1) UNION SELECT sql, 1, 1, 1, 1, 1 FROM sqlite_schema --`,
    `\0' OR 1=1`,
  ]

  it.each(attacks)('%j is bound as a value', async (attack) => {
    const { list, insert } = createThings()
    insert(thing(1))
    insert(thing(2, attack))
    const quoted = attack.replace(/["\\]/g, '\\$&')
    const { items, listmeta } = await list.page(ask({ filters: `metadata.name="${quoted}"` }))
    expect(items.map(({ metadata }) => metadata?.seq)).toEqual([2])
    expect(listmeta.count).toBe(1)
    expect((await list.page(ask())).listmeta.count).toBe(2)
  })

  it('makes one page in a turn of the event loop, and rests after a long one, however many are asked for at once', async () => {
    const { list, insert } = createThings()
    insert(thing(1))
    let [turn, isOver] = [0, false]
    const next = () => {
      turn += 1
      if (!isOver) setImmediate(next)
    }
    setImmediate(next)
    const pages = async (count: number, work: () => void) => {
      const all = Array.from({ length: count }, async () => {
        await list.page(ask())
        work()
        return turn
      })
      return Promise.all(all)
    }
    expect(new Set(await pages(9, () => undefined)).size).toBe(9)
    const [first, second] = await pages(2, () => {
      const end = performance.now() + 30
      while (performance.now() < end);
    })
    isOver = true
    expect(second! - first!).toBeGreaterThan(4)
  })

  it('a list continues behind a text that is an attack', async () => {
    const { list, insert } = createThings()
    attacks.forEach((attack, index) => insert(thing(index + 1, attack)))
    const seen: unknown[] = []
    let next = ''
    do {
      const page = await list.page(ask({ orderBy: 'metadata.name=1', limit: 1, continue: next }))
      seen.push(...page.items.map(({ metadata }) => metadata?.name))
      next = page.listmeta.continue
    } while (next !== '')
    expect(seen).toEqual([...attacks].sort(compareValues))
  })

  it('a list with a condition of its room counts only matching rows', async () => {
    const { list, insert } = createThings()
    for (let seq = 1; seq <= 9; seq += 1) insert(thing(seq))
    const { items, listmeta } = await list.page(ask({ limit: 2 }), { sql: 'at < ?', values: [4_000] })
    expect(items.map(({ metadata }) => metadata?.seq)).toEqual([3, 2])
    expect(listmeta).toMatchObject({ count: 3, limit: 2, offset: 2 })
  })

  it('a list begins at a far offset as at a near one, and is empty behind the end', async () => {
    const { list, insert, sql } = createThings()
    sql.exec('BEGIN')
    for (let seq = 1; seq <= 10_100; seq += 1) insert(thing(seq))
    sql.exec('COMMIT')
    const first = async (offset: number) => {
      const { items, listmeta } = await list.page(ask({ offset }))
      return [items[0]?.metadata?.seq, listmeta.limit, listmeta.offset, listmeta.continue === '']
    }
    expect(await first(10_000)).toEqual([100, 50, 10_050, false])
    expect(await first(10_050)).toEqual([50, 50, 10_100, true])
    expect(await first(10_100)).toEqual([undefined, 0, 10_100, true])
    expect(await first(Number.MAX_SAFE_INTEGER)).toEqual([undefined, 0, Number.MAX_SAFE_INTEGER, true])
  })
})

it('text is compared in memory by its bytes, as SQLite does', () => {
  const letters = [
    '',
    'a',
    'ab',
    'b',
    'é',
    '\ud7ff',
    '\ue000',
    '\uffff',
    '\u{10000}',
    '\u{1f600}',
    '\u{1f601}',
    '\u{10ffff}',
  ]
  const texts = letters.flatMap((one) => letters.map((two) => one + two))
  for (const one of texts) {
    for (const two of texts) {
      const bytes = Buffer.compare(Buffer.from(one), Buffer.from(two))
      expect(Math.sign(compareValues(one, two)), JSON.stringify([one, two])).toBe(bytes)
    }
  }
})
