import { cut, displayWidth, oneLine, pad } from './text.ts'

/** A column of a table. */
export interface Column<Item> {
  readonly title: string
  readonly read: (item: Item) => string | undefined
  /** Gives way on a narrow terminal; an id that is to be copied does not. */
  readonly isFlexible?: boolean
}

const gap = 2
const narrowest = 8

/**
 * Rows below their titles. What comes from a server is made harmless.
 * @param columns of the terminal; Infinity cuts nothing
 */
export function renderTable<Item>(
  items: readonly Item[],
  layout: readonly Column<Item>[],
  columns: number,
): string {
  const rows = [
    layout.map(({ title }) => title),
    ...items.map((item) => layout.map(({ read }) => oneLine(read(item) ?? '') || '-')),
  ]
  const widths = layout.map((_, index) => Math.max(...rows.map((row) => displayWidth(row[index] ?? ''))))
  shrink(widths, layout, columns)
  return rows
    .map((row) => {
      const cells = row.map((cell, index) => pad(cut(cell, widths[index] ?? 0), widths[index] ?? 0))
      return `${cells.join(' '.repeat(gap)).trimEnd()}\n`
    })
    .join('')
}

/** Takes from the widest flexible column until all fit. */
function shrink(widths: number[], layout: readonly Column<never>[], columns: number): void {
  const total = () => widths.reduce((sum, width) => sum + width, gap * (widths.length - 1))
  while (total() > columns) {
    let widest = -1
    for (const [index, width] of widths.entries()) {
      if (layout[index]?.isFlexible && width > Math.max(narrowest, widths[widest] ?? 0)) widest = index
    }
    if (widest < 0) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}
