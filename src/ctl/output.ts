import { jsonForYaml } from '../base/json.ts'
import { type OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'
import { Failure } from './exit-codes.ts'
import { type Paper, eachLine, wrap, span, amount } from './layout.ts'
import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'

export type Format = 'table' | 'json' | 'yaml'

/** Output of a command. */
export interface Output {
  readonly format: Format
  readonly paper: Paper
  /** Writes bytes unchanged. */
  write(bytes: Uint8Array): void
  /** Writes a reply of the API: as the text of `asText`, or the whole reply as JSON or YAML. */
  show(value: unknown, asText: (paper: Paper) => string): Promise<void>
  /** Writes hints and progress to standard error. */
  note(text: string): void
}

interface OutputOptions {
  readonly format: Format
  readonly paper: Paper
  readonly out?: (data: string | Uint8Array) => void
  readonly err?: (text: string) => void
}

/** Writes to standard output and standard error by default; a failed write throws OutputFailed. */
export function createOutput(options: OutputOptions): Output {
  const { format, paper, out = writeOutput, err = writeError } = options
  return {
    format,
    paper,
    write: out,
    async show(value, asText) {
      if (format === 'table') out(asText(paper))
      else if (format === 'json') out(toJson(value))
      else out(await toYaml(value))
    },
    note: (text) => err(`${wrap(text, paper.columns).join('\n')}\n`),
  }
}

/** The failure of a command whose output could not be written. A closed pipe, as with `| head`, is not an error. */
export const outputFailure = (error: OutputFailed): Failure =>
  error.isClosed ? new Failure('ok', '') : new Failure('failed', error.message, { cause: error })

/** JSON, indented by two spaces. Control characters, which could change a terminal, are escaped; the value stays the same. */
function toJson(value: unknown): string {
  return `${eachLine(JSON.stringify(value, null, 2))}\n`
}

/** YAML that kubectl and other readers of go-yaml read as the same. */
async function toYaml(value: unknown): Promise<string> {
  // Loaded here: most commands do not need yaml.
  const { writeYaml } = await import('../base/write-yaml.ts')
  const text = writeYaml(value)
  // The library escapes most control characters. If it has left one, JSON is used, which is YAML too.
  return eachLine(text) === text ? text : `${eachLine(jsonForYaml(value, 2))}\n`
}

/** Progress of an upload: on a terminal in one line, elsewhere in a line now and then. */
export interface Meter {
  /** Sets the number of all bytes, and of those that the host has. */
  begin(totalBytes: number, heldBytes: number): void
  sent(bytes: number): void
  /** Bytes sent since the start of the command. */
  sentBytes(): number
  /** Writes a line of its own. */
  say(text: string): void
  end(): void
}

const drawnEveryMs = 200
const linesEveryMs = 10_000
const windowMs = 10_000

export function createMeter(
  stream: MaybeTerminal,
  say: (text: string) => void,
  now: () => number = () => performance.now(),
): Meter {
  const line = createStatusLine(stream)
  const everyMs = stream.isTTY === true ? drawnEveryMs : linesEveryMs
  let total = 0
  let done = 0
  let sent = 0
  let nextAt = now() + everyMs
  /** Bytes sent at moments of the last seconds. */
  let marks: { at: number; sent: number }[] = []

  function report(): void {
    const at = now()
    if (at < nextAt) return
    nextAt = at + everyMs
    marks = [...marks.filter((mark) => at - mark.at <= windowMs), { at, sent }]
    const [oldest] = marks
    const perSecond = oldest && at > oldest.at ? ((sent - oldest.sent) * 1_000) / (at - oldest.at) : 0
    const text = describe(done, total, perSecond)
    if (stream.isTTY === true) line.draw(text)
    else say(text)
  }

  return {
    begin(totalBytes, heldBytes) {
      total = totalBytes
      done = heldBytes
    },
    sent(bytes) {
      sent += bytes
      done += bytes
      report()
    },
    sentBytes: () => sent,
    say(text) {
      line.clear()
      say(text)
    },
    end: line.clear,
  }
}

function describe(done: number, total: number, perSecond: number): string {
  const percent = total === 0 ? 100 : Math.min(100, Math.floor((100 * done) / total))
  const rate = perSecond > 0 ? `, ${amount(perSecond)}/s` : ''
  const left = perSecond > 0 && done < total ? `, ${span((total - done) / perSecond)} left` : ''
  return `${amount(done)} of ${amount(total)}, ${percent} %${rate}${left}`
}
