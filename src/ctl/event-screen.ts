import type { Output } from './output.ts'
import { displayWidth, moment, oneLine, span, wrapBelow } from './text.ts'
import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'
import type { Event } from '../cluster/events/schemas.ts'

/** What is shown of an event. */
export type ShownEvent = Pick<Event, 'reason' | 'message' | 'severity' | 'step'> & {
  readonly metadata: Pick<Event['metadata'], 'creationTimestamp'>
}

/** Shows events as they come: a line each where it fits, and on a terminal a line below with the steps that run. */
export interface EventScreen {
  show(event: ShownEvent): Promise<void>
  /** Takes the line of the running steps away. */
  end(): void
}

interface Running {
  readonly title: string
  readonly since: number
}

const drawnEveryMs = 1_000
const beginReasons = ['StepStarted', 'StepRetried']
const endReasons = ['StepDone', 'StepFailed', 'StepStopped', 'StepCutOff']

/** @param terminal where the line of the running steps is drawn */
export function createEventScreen(
  output: Output,
  terminal: MaybeTerminal,
  now: () => number = () => Date.now(),
): EventScreen {
  const line = createStatusLine(terminal)
  const running = new Map<string, Running>()
  const draw = () => {
    if (output.format !== 'table') return
    const steps = [...running.values()]
    if (steps.length === 0) line.clear()
    else
      line.draw(
        steps.map(({ title, since }) => `${title}: ${span(Math.max(0, now() - since) / 1_000)}`).join(', '),
      )
  }
  const timer = setInterval(draw, drawnEveryMs).unref()

  return {
    async show(event) {
      const { step = '', reason, message, metadata } = event
      const at = Date.parse(metadata.creationTimestamp)
      const begun = running.get(step)
      if (beginReasons.includes(reason)) running.set(step, { title: oneLine(message), since: at })
      if (endReasons.includes(reason)) running.delete(step)
      line.clear()
      if (output.format === 'json') output.write(Buffer.from(`${JSON.stringify(event)}\n`))
      else if (output.format === 'yaml') {
        output.write(Buffer.from('---\n'))
        await output.show(event, () => '')
      } else
        output.write(Buffer.from(`${renderEvent(event, output.paper.columns, begun && at - begun.since)}\n`))
      draw()
    },
    end() {
      clearInterval(timer)
      line.clear()
    },
  }
}

const reasonWidth = 24

/**
 * One line: time, reason, message, and how long a step took. Where that is wider than the terminal, the message is below.
 * @param columns of the terminal; Infinity where there is no terminal
 * @param tookMs undefined where it is not known
 */
export function renderEvent(
  { metadata, reason, message, severity }: ShownEvent,
  columns: number,
  tookMs?: number,
): string {
  const mark = severity === 'Normal' ? ' ' : '!'
  const took = reason === 'StepDone' && tookMs !== undefined ? ` (${span(tookMs / 1_000)})` : ''
  const time = `${moment(metadata.creationTimestamp)} ${mark}`
  const name = oneLine(reason)
  const text = `${oneLine(message)}${took}`
  const line = `${time} ${name.padEnd(reasonWidth)} ${text}`
  if (displayWidth(line) <= columns) return line
  const head = `${time} ${name}`
  const heads = displayWidth(head) <= columns ? [head] : [time.trimEnd(), ...wrapBelow(name, columns)]
  return [...heads, ...wrapBelow(text, columns)].join('\n')
}
