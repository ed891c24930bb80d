import { printable } from '../base/printable.ts'
import type { CommandLine } from './command.ts'
import { Failure } from './exit-codes.ts'

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
