import { describe, expect, it } from 'vitest'
import type { Revision } from '../../../../src/cluster/commands/change-host.ts'
import { hasEnded, placeHints } from '../../../../src/cluster/commands/perform-change.ts'

const revisionOf = (
  revision: number,
  outcome: Revision['outcome'],
  more: Partial<Revision> = {},
): Revision => ({
  ...{ revision, outcome, by: 'ada', origin: 'update', kubernetesVersion: '1.34.4', isActive: false },
  definition: { name: 'shop', version: '1.0.0' },
  creationTimestamp: '2026-01-31T08:00:00.000Z',
  ...more,
})
const good = revisionOf(1, 'good', { isActive: true })

describe('the end of a revision', () => {
  it.each(['waiting', 'applying', 'failed'] as const)('%s is not the end', (outcome) => {
    expect(hasEnded([revisionOf(2, outcome), good], 2, '')).toBe(false)
  })

  it('failed is the end where a later write took the place of the way back, which itself is not', () => {
    const failed = revisionOf(2, 'failed', { reason: 'web is down' })
    const later = revisionOf(3, 'applying', { isActive: true, origin: 'update' })
    const before = { ...good, isActive: false }
    expect(() => hasEnded([later, failed, before], 2, '')).toThrow(
      'revision 2 failed, and revision 3 is applied instead: web is down',
    )
    expect(hasEnded([{ ...later, origin: 'goingBack' }, failed, before], 2, '')).toBe(false)
  })

  it('good is the end, whatever came after it', () => {
    expect(hasEnded([revisionOf(3, 'applying'), revisionOf(2, 'good'), good], 2, '')).toBe(true)
  })

  it.each([
    [
      revisionOf(2, 'rolledBack', { reason: 'web is down' }),
      '',
      'revision 2 failed, and revision 1 runs again: web is down',
    ],
    [revisionOf(2, 'failed'), 'run kubeadm', 'revision 2 failed, and the way back too: run kubeadm'],
    [
      revisionOf(2, 'held', { reason: 'no token' }),
      '',
      'no token; give the values: edgehostctl cluster apply --set',
    ],
    [
      revisionOf(2, 'applying'),
      'p1/web: 0 of 1',
      'revision 2 is not good, and there is no way back by itself: p1/web',
    ],
    [revisionOf(2, 'superseded'), '', 'a later change took the place of revision 2'],
    [revisionOf(5, 'good'), '', 'revision 2 is not kept any more'],
  ])('%o ends with its reason', (revision, stuck, message) => {
    expect(() => hasEnded([revision, good], 2, stuck)).toThrow(message)
  })
})

it('a revision whose packs went back ends with what runs now, and a later one with the revision that runs again', () => {
  const reason = 'web is down; the packs of revision 1 run again, as revision 3, and Kubernetes 1.34.4 stays'
  const back = revisionOf(3, 'good', { origin: 'goingBack', by: '', isActive: true })
  const before = [back, revisionOf(2, 'rolledBack', { reason }), revisionOf(1, 'good')]
  expect(() => hasEnded(before, 2, '')).toThrow(`revision 2 failed, and was taken back: ${reason}`)
  const later = revisionOf(4, 'rolledBack', { reason: 'no image' })
  expect(() => hasEnded([later, ...before], 4, '')).toThrow(
    'revision 4 failed, and revision 3 runs again: no image',
  )
})

describe('what a change does to what was accepted before', () => {
  const at = '2031-05-01T02:00:00.000Z'
  it.each([
    ['nothing, where the newest one is good', [good], true, false, []],
    [
      'it adds to one that waits',
      [revisionOf(2, 'waiting', { scheduleAt: at }), good],
      ...[
        true,
        false,
        [
          'Revision 2, which waits for 2031-05-01 02:00:00Z, is part of this; the new revision takes its place.',
        ],
      ],
    ],
    [
      'going back gives one up',
      [revisionOf(2, 'waiting'), good],
      true,
      true,
      ['Revision 2, which waits, is given up.'],
    ],
    [
      'without a change the one that waits is shown',
      [revisionOf(2, 'held'), good],
      ...[false, false, ['This is revision 2, which was accepted and is held, since values are missing.']],
    ],
    [
      'it comes in the place of one that is applied',
      [revisionOf(2, 'applying', { isActive: true }), { ...good, isActive: false }],
      ...[true, false, ['Revision 2 is being applied; this one comes in its place.']],
    ],
    ['one that failed is history', [revisionOf(2, 'rolledBack'), good], true, false, []],
  ] as [string, Revision[], boolean, boolean, string[]][])(
    '%s',
    (_what, revisions, isChanged, isBack, expected) => {
      expect(placeHints({ revisions }, { isChanged }, isBack)).toEqual(expected)
    },
  )
})
