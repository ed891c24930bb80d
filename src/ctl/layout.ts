import { escapeInvisible } from '../base/printable.ts'

const units = ['bytes', 'kB', 'MB', 'GB', 'TB']

/** A size for people, in decimal units: `1.2 GB`. */
export function amount(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 999.5 && unit < units.length - 1; unit += 1) value /= 1_000
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`
}

// East Asian Width W and F (Unicode 16, EastAsianWidth.txt) by blocks, and characters that terminals draw as an emoji.
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{17000}-\u{18d08}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
const plain = /^[\x20-\x7e]*$/

/** Text of a server for one line of a terminal: nothing in it moves the cursor or changes colours. */
export const oneLine = (text: string): string => escapeInvisible(text)

/** The same for each line of a text. */
export const eachLine = (text: string): string => text.split('\n').map(oneLine).join('\n')

/** Number of terminal columns of a text. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

function characterWidth(character: string): number {
  if (/[\p{Mn}\p{Me}\p{Cf}]/u.test(character)) return 0
  return wide.test(character) ? 2 : 1
}

/** The text, padded with spaces to a width. */
export const pad = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(0, columns - displayWidth(text)))

/** The text in lines of at most so many columns, broken at spaces; a word is broken only if it does not fit into a line. */
export function wrap(text: string, columns: number): string[] {
  if (displayWidth(text) <= columns) return [text]
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && displayWidth(`${last} ${word}`) <= columns)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(...breakWord(word, columns))
  }
  return lines
}

/** A text of several lines, each wrapped. */
export const wrapLines = (text: string, columns: number): string =>
  text
    .split('\n')
    .flatMap((line) => wrap(line, columns))
    .join('\n')

/** Columns of the widest word of a text. */
export const longestWord = (text: string): number => Math.max(...text.split(' ').map(displayWidth))

/** The lines of a text that is placed below its label: indented if its longest word then still fits. */
export function wrapBelow(text: string, columns: number): string[] {
  const indent = longestWord(text) <= columns - 2 ? '  ' : ''
  return wrap(text, columns - indent.length).map((line) => indent + line)
}

function breakWord(word: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const character of word) {
    if (displayWidth(line + character) > columns && line !== '') {
      lines.push(line)
      line = ''
    }
    line += character
  }
  return [...lines, line]
}

/** A number in English notation, 1,234. */
export const count = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ',')

/** `1 session`, `2 sessions`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** A time of the API (RFC 3339, UTC) without fractions of a second: `2026-01-31 08:00:00Z`. */
export const moment = (timestamp: string): string =>
  oneLine(timestamp.replace('T', ' ').replace(/\.\d+Z$/, 'Z'))

/** A time span in its two largest units: `3 days 4 h`. */
export function span(seconds: number): string {
  const total = Math.max(0, Math.floor(seconds))
  const days = Math.floor(total / 86_400)
  const hours = Math.floor(total / 3_600) % 24
  const minutes = Math.floor(total / 60) % 60
  if (days > 0) return `${plural(days, 'day')}${days < 100 && hours > 0 ? ` ${hours} h` : ''}`
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${total % 60} s` : `${total} s`
}

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
