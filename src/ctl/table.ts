import { longestWord, oneLine, wrap, wrapBelow, displayWidth, pad } from './text.ts'

/** A labelled fact of one or more lines, in the layout of hostnamectl. */
export interface Fact {
  readonly label: string
  readonly lines: readonly string[]
  readonly mood?: Mood
}

/** The meaning of a fact, which a terminal shows by a colour. */
type Mood = 'good' | 'warning' | 'bad'

const colours: Readonly<Record<Mood, string>> = { good: '32', warning: '33', bad: '31' }

/** The output that a text is laid out for. */
export interface Paper {
  /** Infinity when the output is not a terminal. */
  readonly columns: number
  readonly isColoured: boolean
}

/**
 * Facts with their labels in a column of their own, aligned to the right. No line is wider than the paper, and no word
 * is broken that fits into a line: where a word does not fit beside its label, the text is below the label.
 */
export function renderFacts(facts: readonly Fact[], paper: Paper): string {
  const width = Math.max(...facts.map(({ label }) => label.length)) + 1
  const room = paper.columns - width - 2
  return facts.map((fact) => renderFact(fact, width, room, paper)).join('')
}

function renderFact({ label, lines, mood }: Fact, width: number, room: number, paper: Paper): string {
  const texts = lines.map(oneLine)
  const show = (text: string) => (mood ? paint(text, colours[mood], paper) : text)
  const isBelow = texts.some((text) => longestWord(text) > room)
  const name = (text: string) => paint(text.padStart(width + 1), '1', paper)
  const shown = isBelow
    ? [name(`${label}:`), ...texts.flatMap((text) => wrapBelow(text, paper.columns)).map(show)]
    : texts
        .flatMap((text) => wrap(text, room))
        .map((text, index) => `${name(index === 0 ? `${label}:` : '')} ${show(text)}`.trimEnd())
  return shown.map((line) => `${line}\n`).join('')
}

function paint(text: string, code: string, { isColoured }: Paper): string {
  return isColoured && text.trim() !== '' ? `\u001b[${code}m${text}\u001b[0m` : text
}

/** A column of a table. */
export interface Column<Item> {
  readonly title: string
  readonly read: (item: Item) => string | undefined
  /** On a narrow terminal its text is wrapped. */
  readonly isFlexible?: boolean
}

const gap = 2

/**
 * Rows below their titles. On a terminal too narrow for the words of a row, each item is a block of lines. Control characters
 * in the texts of a server are escaped.
 * @param columns of the terminal; with Infinity no line is wrapped
 */
export function renderTable<Item>(
  items: readonly Item[],
  layout: readonly Column<Item>[],
  columns: number,
): string {
  const titles = layout.map(({ title }) => title)
  const rows = items.map((item) => layout.map(({ read }) => oneLine(read(item) ?? '') || '-'))
  const widths = findWidths([titles, ...rows], layout, columns)
  if (widths) return [titles, ...rows].map((row) => renderRow(row, widths)).join('')
  return rows.map((row) => renderItem(titles, row, columns)).join('\n')
}

/** Narrows the widest flexible column until all columns fit; `undefined` if they cannot fit. */
function findWidths(
  rows: readonly (readonly string[])[],
  layout: readonly Column<never>[],
  columns: number,
): number[] | undefined {
  const widest = (measure: (text: string) => number) =>
    layout.map((_, index) => Math.max(...rows.map((row) => measure(row[index] ?? ''))))
  const widths = widest(displayWidth)
  const least = widest(longestWord).map((width, index) => (layout[index]?.isFlexible ? width : widths[index]))
  const total = () => widths.reduce((sum, width) => sum + width, gap * (widths.length - 1))
  while (total() > columns) {
    let found = -1
    for (const [index, width] of widths.entries()) {
      if (width > (least[index] ?? 0) && width > (widths[found] ?? 0)) found = index
    }
    if (found < 0) return undefined
    widths[found] = (widths[found] ?? 0) - 1
  }
  return widths
}

function renderRow(row: readonly string[], widths: readonly number[]): string {
  const cells = row.map((cell, index) => wrap(cell, widths[index] ?? 0))
  const height = Math.max(...cells.map((lines) => lines.length))
  return Array.from({ length: height }, (_, line) => {
    const parts = cells.map((lines, index) => pad(lines[line] ?? '', widths[index] ?? 0))
    return `${parts.join(' '.repeat(gap)).trimEnd()}\n`
  }).join('')
}

/** An item as lines, each cell behind its title or below it. */
function renderItem(titles: readonly string[], row: readonly string[], columns: number): string {
  const indent = Math.max(...titles.map(displayWidth)) + gap
  return titles
    .flatMap((title, index) => {
      const cell = row[index] ?? ''
      if (longestWord(cell) > columns - indent) return [title, ...wrapBelow(cell, columns)]
      return wrap(cell, columns - indent).map((line, at) => pad(at === 0 ? title : '', indent) + line)
    })
    .map((line) => `${line}\n`)
    .join('')
}
