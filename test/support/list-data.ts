import { DatabaseSync } from 'node:sqlite'
import { createContinueTokens } from '../../src/lists/continue-token.ts'
import type { MemoryField } from '../../src/lists/memory.ts'
import { parseListQuery, type ListParameters } from '../../src/lists/query.ts'
import type { ListResource } from '../../src/lists/resource.ts'
import { createSqlList } from '../../src/lists/sql-list.ts'
import type { SqlField } from '../../src/lists/sql.ts'
import { createReader } from '../../src/store/reader.ts'

/** A row of the lists that tests page through. */
export interface Thing {
  readonly seq: number
  readonly name: string
  readonly kind: string
  readonly size: number
  readonly isOn: boolean
  readonly at: number
}

export const toItem = ({ seq, name, kind, size, isOn, at }: Thing) => ({
  metadata: { seq, name, at: new Date(at).toISOString() },
  spec: { kind, size, isOn },
})

/** The same fields twice: of the objects in memory, and of the columns. */
export const memoryThings: ListResource<MemoryField<Thing>> = {
  name: 'things',
  key: 'metadata.seq',
  fields: {
    'metadata.seq': { type: 'integer', read: ({ seq }) => seq },
    'metadata.name': { type: 'text', read: ({ name }) => name },
    'metadata.at': { type: 'time', read: ({ at }) => at },
    'spec.kind': { type: 'text', read: ({ kind }) => kind },
    'spec.size': { type: 'integer', read: ({ size }) => size },
    'spec.isOn': { type: 'boolean', read: ({ isOn }) => isOn },
    'spec.text': { type: 'text', isOrdered: false, read: ({ name }) => name },
  },
  defaultOrder: [{ path: 'metadata.at', direction: -1 }],
}

const columns: Readonly<Record<string, string>> = {
  'metadata.seq': 'seq',
  'metadata.name': 'name',
  'metadata.at': 'at',
  'spec.kind': 'kind',
  'spec.size': 'size',
  'spec.isOn': 'is_on',
  'spec.text': 'name',
}

export const sqlThings: ListResource<SqlField> = {
  ...memoryThings,
  families: [],
  fields: Object.fromEntries(
    Object.entries(memoryThings.fields).map(([path, { type, isOrdered = true }]) => [
      path,
      { type, isOrdered, column: columns[path] ?? '' },
    ]),
  ),
}

export const tokens = createContinueTokens(Buffer.alloc(32, 1))

/** A query as a client would send it. */
export const ask = (parameters: ListParameters = {}) => parseListQuery(parameters, memoryThings, { tokens })

/** Things in a table of a database in memory, and the list of them. */
export function createThings() {
  const sql = new DatabaseSync(':memory:')
  sql.exec(
    `CREATE TABLE thing (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL,
       is_on INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;
     CREATE INDEX thing_at ON thing (at)`,
  )
  const insert = sql.prepare('INSERT INTO thing VALUES (?, ?, ?, ?, ?, ?)')
  const remove = sql.prepare('DELETE FROM thing WHERE seq = ?')
  const count = sql.prepare('SELECT count(*) AS count FROM thing')
  const { read } = createReader(sql)
  return {
    sql,
    insert: ({ seq, name, kind, size, isOn, at }: Thing) =>
      void insert.run(seq, name, kind, size, Number(isOn), at),
    remove: (seq: number) => void remove.run(seq),
    list: createSqlList({
      table: 'thing',
      columns: 'seq AS number, name, kind, size, is_on, at AS time',
      resource: sqlThings,
      toItem: (row) =>
        toItem({
          ...(row as unknown as Thing),
          seq: Number(row.number),
          at: Number(row.time),
          isOn: row.is_on === 1,
        }),
      count: () => Number(count.get()?.count),
      sql,
      read,
    }),
  }
}
