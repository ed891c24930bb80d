import { cut, oneLine, wrap } from './text.ts'

/** A line of a screen like that of hostnamectl: a label and what it says, several lines of it. */
export interface Fact {
  readonly label: string
  readonly lines: readonly string[]
  readonly mood?: Mood
}

/** How a line is meant; a terminal shows it by a colour. */
export type Mood = 'good' | 'warning' | 'bad'

const colours: Readonly<Record<Mood, string>> = { good: '32', warning: '33', bad: '31' }

/** What a screen is drawn on. */
export interface Paper {
  /** Infinity when it is no terminal. */
  readonly columns: number
  readonly isColoured: boolean
}

/** Facts with their labels in a column of their own, aligned to the right. Nothing is wider than the paper. */
export function renderFacts(facts: readonly Fact[], paper: Paper): string {
  const width = Math.max(...facts.map(({ label }) => label.length)) + 1
  const room = paper.columns - width - 2
  return facts
    .map(({ label, lines, mood }) =>
      lines
        .flatMap((line) => (Number.isFinite(room) ? wrap(oneLine(line), room) : [oneLine(line)]))
        .map((line, index) => {
          const text = Number.isFinite(room) ? cut(line, room) : line
          const name = (index === 0 ? `${label}:` : '').padStart(width + 1)
          return (
            `${paint(name, '1', paper)} ${mood ? paint(text, colours[mood], paper) : text}`.trimEnd() + '\n'
          )
        })
        .join(''),
    )
    .join('')
}

function paint(text: string, code: string, { isColoured }: Paper): string {
  return isColoured && text.trim() !== '' ? `\u001b[${code}m${text}\u001b[0m` : text
}
