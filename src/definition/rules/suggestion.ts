import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'

/** What to add to a sentence about an unknown name: `; did you mean NAME?`, or nothing. */
export type Suggest = (name: string, known: Iterable<string>) => string

// Pairs of characters that are compared: some 20 ms.
const workLimit = 2_000_000

/** Each name is compared with all known ones, so only the first `limit` unknown ones get a suggestion, or fewer. */
export function createSuggest(limit: number): Suggest {
  let left = limit
  let work = workLimit
  return (name, known) => {
    left -= 1
    const names = left >= 0 && work > 0 ? [...known] : []
    work -= names.reduce((sum, each) => sum + each.length * name.length, 0)
    const near = work > 0 ? nearestName(name, names) : undefined
    return near === undefined ? '' : `; did you mean ${printable(near)}?`
  }
}
