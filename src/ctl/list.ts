import { printable } from '../base/printable.ts'
import type { CommandLine } from './command.ts'
import { Failure } from './exit-codes.ts'
import type { HostProgram } from './client.ts'
import type { Output } from './output.ts'
import { renderTable, type Column, count } from './layout.ts'

/** The number of `--limit`; 0 is no limit. */
export function parseLimit({ options: { limit } }: CommandLine<'limit'>, preset: number): number {
  if (limit === undefined) return preset
  if (!/^\d{1,9}$/.test(limit))
    throw new Failure(
      'usage',
      `--limit must be a whole number, 0 for all items; it is ${printable(limit) || 'empty'}`,
    )
  return Number(limit)
}

/** The part of the query that `--filter` gives. */
export const filterOf = ({ options: { filter } }: CommandLine<'filter'>): { readonly filters?: string } =>
  filter === undefined ? {} : { filters: filter }

/** A command that shows a list as a table: all items, or the ones that `--filter` and `--limit` leave. */
export const showList =
  <Item>(path: string, layout: readonly Column<Item>[]): HostProgram<'limit' | 'filter'> =>
  async ({ client, line, output }) => {
    const found = await client.list<Item>(path, { ...filterOf(line) }, parseLimit(line, 0))
    await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
    return undefined
  }

/** Says below a table that it does not have all items. */
export function noteRest(output: Output, shown: number, all: number): void {
  if (output.format === 'table') output.note(`${count(shown)} of ${count(all)}; --limit=0 gives all`)
}
