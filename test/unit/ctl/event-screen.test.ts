import { expect, it } from 'vitest'
import { renderEvent } from '../../../src/ctl/cluster.ts'
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
