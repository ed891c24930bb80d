import type { LineChange } from './schemas.ts'

/** The lines in which two texts differ, in their order: of a change first what was there. */
export interface DiffLines {
  readonly lines: readonly LineChange[]
  /** How many further ones there are. */
  readonly leftOut: number
}

// More than a person reads.
const mostLines = 200
const longestLine = 400
// Of a comparison of each line with each: some milliseconds.
const mostCells = 250_000

/** Compares two texts line by line. Where they are long and differ much, the whole part that differs is shown as replaced. Pure. */
export function diffLines(before: string, after: string): DiffLines {
  const [was, is] = [linesOf(before), linesOf(after)]
  const shorter = Math.min(was.length, is.length)
  let start = 0
  while (start < shorter && was[start] === is[start]) start += 1
  let end = 0
  while (end < shorter - start && was.at(-1 - end) === is.at(-1 - end)) end += 1
  const changes = between(was.slice(start, was.length - end), is.slice(start, is.length - end))
  const lines = changes.slice(0, mostLines).map(({ change, line, text }) => ({
    change,
    line: line + start + 1,
    text: text.length > longestLine ? `${text.slice(0, longestLine)}...` : text,
  }))
  return { lines, leftOut: changes.length - lines.length }
}

const linesOf = (text: string): readonly string[] => {
  const whole = text.replace(/\r?\n$/, '')
  return whole === '' ? [] : whole.split(/\r?\n/)
}

/** @returns with numbers from 0 */
function between(was: readonly string[], is: readonly string[]): LineChange[] {
  const removed = (line: number): LineChange => ({ change: 'removed', line, text: was[line] ?? '' })
  const added = (line: number): LineChange => ({ change: 'added', line, text: is[line] ?? '' })
  if (was.length * is.length > mostCells)
    return [...was.map((_, line) => removed(line)), ...is.map((_, line) => added(line))]
  // Lengths of the longest common subsequences of the ends from each pair on.
  const width = is.length + 1
  const common = new Uint32Array((was.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = was.length - 1; row >= 0; row -= 1)
    for (let column = is.length - 1; column >= 0; column -= 1)
      common[row * width + column] =
        was[row] === is[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1))
  const found: LineChange[] = []
  let [row, column] = [0, 0]
  while (row < was.length || column < is.length)
    if (row < was.length && column < is.length && was[row] === is[column]) {
      row += 1
      column += 1
    } else if (column === is.length || (row < was.length && at(row + 1, column) >= at(row, column + 1)))
      found.push(removed(row++))
    else found.push(added(column++))
  return found
}
