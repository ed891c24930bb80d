import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { createEventScreen, renderEvent } from '../../../src/ctl/cluster.ts'
import type { Output } from '../../../src/ctl/output.ts'
import { eventOf } from '../../support/played-cluster.ts'

const event = eventOf(1, 'ContainerRuntimeStarted', 'containerd of the cluster runs on this host')
const failed = eventOf(2, 'StepFailed', `no room in /var/lib/edgehostd${'/long'.repeat(4)}`)

it('in a pipe an event is one line', () => {
  expect(renderEvent(event, Infinity)).toBe(
    '2026-01-31 08:00:01Z   ContainerRuntimeStarted  containerd of the cluster runs on this host',
  )
  expect(renderEvent(failed, Infinity)).toMatch(/^2026-01-31 08:00:02Z ! StepFailed {15}no room in .*long$/)
})

it('on a terminal too narrow for its line, the message of an event is below its time and reason', () => {
  expect(renderEvent(event, 91)).not.toContain('\n')
  expect(renderEvent(event, 90)).toBe(
    '2026-01-31 08:00:01Z   ContainerRuntimeStarted\n  containerd of the cluster runs on this host',
  )
  expect(renderEvent(event, 40).split('\n')).toEqual([
    ...['2026-01-31 08:00:01Z', '  ContainerRuntimeStarted'],
    ...['  containerd of the cluster runs on this', '  host'],
  ])
  expect(renderEvent(failed, 40).split('\n')[0]).toBe('2026-01-31 08:00:02Z ! StepFailed')
})

it('the time that a step took is shown where it is known', () => {
  expect(renderEvent(eventOf(3, 'StepDone', 'Set up'), Infinity, 62_000)).toMatch(/Set up \(1 min 2 s\)$/)
})

it('on a terminal the line below has the steps that run, and how long the revision has until it is taken back', async () => {
  const terminal = Object.assign(new PassThrough(), { isTTY: true as const, columns: 120 })
  const lines = { format: 'table', paper: { columns: 120 }, write: () => undefined } as unknown as Output
  let now = Date.parse('2026-01-31T08:00:03.000Z')
  const screen = createEventScreen(lines, terminal, () => now)
  const drawn = () => String(terminal.read() ?? '')
  try {
    await screen.show({ ...eventOf(3, 'StepStarted', 'Install the pack web'), step: 'web' })
    drawn()
    const timestamp = '2026-01-31T08:01:50.000Z'
    screen.setDeadline({ timestamp, leftSeconds: 100, action: 'takenBack' })
    expect(drawn()).toContain('Install the pack web: 0 s, taken back in 1 min 40 s')
    now += 30_000
    await screen.show(eventOf(4, 'StepProgress', 'waits'))
    expect(drawn()).toContain('Install the pack web: 30 s, taken back in 1 min 10 s')
    screen.setDeadline({ timestamp, leftSeconds: 5, action: 'stuck' })
    expect(drawn()).toContain('an operator is needed in 5 s')
    screen.setDeadline(undefined)
    expect(drawn()).not.toContain('needed')
  } finally {
    screen.end()
  }
  drawn()
  // One that is read when the watch has ended.
  screen.setDeadline({ timestamp: '2026-01-31T08:01:50.000Z', leftSeconds: 5, action: 'stuck' })
  expect(drawn()).toBe('')
})
