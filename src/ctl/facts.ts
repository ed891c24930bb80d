import { longestWord, oneLine, wrap, wrapBelow } from './text.ts'

/** A labelled fact of one or more lines, in the layout of hostnamectl. */
export interface Fact {
  readonly label: string
  readonly lines: readonly string[]
  readonly mood?: Mood
}

/** The meaning of a fact, which a terminal shows by a colour. */
export type Mood = 'good' | 'warning' | 'bad'

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
