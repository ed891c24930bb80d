import { nearestName } from '../../errors/nearest-name.ts'
import { printable } from '../../errors/printable.ts'

/** What to add to a sentence about an unknown name: `; did you mean NAME?`, or nothing. */
export type Suggest = (name: string, known: Iterable<string>) => string

/** Each name is compared with all known ones, so only the first `limit` unknown ones get a suggestion. */
export function createSuggest(limit: number): Suggest {
  let left = limit
  return (name, known) => {
    left -= 1
    const near = left >= 0 ? nearestName(name, [...known]) : undefined
    return near === undefined ? '' : `; did you mean ${printable(near)}?`
  }
}
