import { describe, expect, it } from 'vitest'
import { newsBetween, verdictOf } from '../../../src/platform/commands/cluster-news.ts'
import type { SpectroCluster } from '../../../src/platform/schemas/clusters.ts'

const now = '2026-01-31T08:10:00Z'
interface Looks {
  readonly wanted?: number
  readonly number?: number
  readonly reason?: string
  readonly status?: string
  readonly heardAt?: string
  readonly state?: SpectroCluster['status']['state']
  readonly steps?: NonNullable<SpectroCluster['status']['steps']>
  readonly isDeletionRequested?: boolean
}

function cluster(looks: Looks): SpectroCluster {
  const { wanted = 2, number, reason, status = 'False', heardAt, state = 'Running', steps = [] } = looks
  return {
    metadata: { lastModifiedTimestamp: '2026-01-31T08:00:00Z' },
    spec: { number: wanted },
    status: {
      ...{ state, steps, isDeletionRequested: looks.isDeletionRequested === true },
      ...(number === undefined ? {} : { number }),
      ...(heardAt === undefined ? {} : { lastHeartbeatTimestamp: heardAt }),
      conditions: reason === undefined ? [] : [{ type: 'Wanted', status, reason, message: 'why' }],
    },
  } as unknown as SpectroCluster
}

describe('what a look at a cluster means', () => {
  it.each<[string, Looks, boolean, ReturnType<typeof verdictOf>]>([
    ['nothing was said', {}, false, 'goesOn'],
    ['the last change is applied', { reason: 'Applied', number: 2 }, false, 'applied'],
    ['the change before is applied', { reason: 'Applied', number: 1 }, false, 'goesOn'],
    [
      'a deletion is wanted of what is applied',
      { reason: 'Applied', number: 2, isDeletionRequested: true },
      false,
      'goesOn',
    ],
    ['a download is tried again', { reason: 'DownloadFailed' }, true, 'goesOn'],
    ['the change before was refused', { reason: 'Refused', number: 1 }, false, 'goesOn'],
    [
      'the change is refused',
      { reason: 'Refused', number: 1 },
      true,
      { failure: 'the host has refused it: why' },
    ],
    [
      'the first change is refused',
      { reason: 'Refused', wanted: 1 },
      false,
      { failure: 'the host has refused it: why' },
    ],
    [
      'it was taken back after it was accepted',
      { reason: 'Refused', number: 2 },
      false,
      { failure: 'the host has refused it: why' },
    ],
    [
      'it was refused a while ago',
      { reason: 'ContentMissing', number: 1, heardAt: '2026-01-31T08:02:30Z' },
      false,
      { failure: 'content is missing on the host: why' },
    ],
    [
      'the host was heard, but may not have looked',
      { reason: 'ContentMissing', number: 1, heardAt: '2026-01-31T08:02:29Z' },
      false,
      'goesOn',
    ],
  ])('%s', (_, looks, isChanged, verdict) => {
    expect(verdictOf(cluster(looks), isChanged)).toEqual(verdict)
  })
})

describe('news of a cluster', () => {
  const step = (state: 'running' | 'done' | 'failed', more: object = {}) => ({
    ...{ key: 'k', title: 'Start Kubernetes', state, failures: 0, startTimestamp: '2026-01-31T08:01:00Z' },
    ...more,
  })
  const reasons = (before: Looks | undefined, after: Looks) =>
    newsBetween(before && cluster(before), cluster(after), now).map(({ reason, metadata, step: key }) =>
      [reason, metadata.creationTimestamp.slice(14, 19), key].filter(Boolean).join(' '),
    )

  it('are all that there is at first, steps in their order', () => {
    const later = step('running', { key: 'l', startTimestamp: '2026-01-31T08:03:00Z' })
    const done = step('done', { endTimestamp: '2026-01-31T08:02:00Z' })
    expect(reasons(undefined, { steps: [later, done], reason: 'Applying', status: 'Unknown' })).toEqual([
      ...['Wanted 10:00', 'StepStarted 01:00 k', 'StepDone 02:00 k', 'StepStarted 03:00 l'],
      ...['Running 10:00', 'Applying 10:00'],
    ])
  })

  it('are what has changed since the look before', () => {
    const before = { steps: [step('running')] }
    expect(reasons(before, before)).toEqual([])
    const done = step('done', { endTimestamp: '2026-01-31T08:02:00Z' })
    expect(reasons(before, { steps: [done] })).toEqual(['StepDone 02:00 k'])
    const failed = step('failed', { failures: 1, endTimestamp: '2026-01-31T08:02:00Z' })
    expect(reasons(before, { steps: [failed] })).toEqual(['StepFailed 02:00 k'])
    const again = step('running', { failures: 1, startTimestamp: '2026-01-31T08:04:00Z' })
    expect(reasons({ steps: [failed] }, { steps: [again] })).toEqual(['StepRetried 04:00 k'])
    expect(reasons(before, { ...before, wanted: 3, state: 'Error', reason: 'Refused' })).toEqual([
      ...['Wanted 10:00', 'Error 10:00', 'Refused 10:00'],
    ])
  })
})
