import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'

/** The end of a message about an unknown name: `; did you mean NAME?`, or an empty text. */
export type Suggest = (name: string, known: Iterable<string>) => string

// Comparisons of characters: about 20 ms.
const workLimit = 2_000_000

/** Each unknown name is compared with all known ones, so at most the first `limit` unknown names get a suggestion. */
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
