import { span } from './text.ts'
import { amount } from './amount.ts'
import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'

/** Shows how far an upload is: on a terminal in one line, elsewhere in a line now and then. */
export interface Meter {
  /** Sets how many bytes there are in all, and how many of them the host has. */
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
