import { describe, expect, it } from 'vitest'
import { newsBetween, verdictOf } from '../../../src/platform/clusters/commands-watch.ts'
import type { SpectroCluster } from '../../../src/platform/clusters/schemas.ts'

const now = '2026-01-31T08:10:00Z'
interface Looks {
  readonly wanted?: number
  /** What the condition is about. */
  readonly number?: number
  readonly reason?: string
  readonly status?: string
  readonly state?: SpectroCluster['status']['state']
  readonly steps?: NonNullable<SpectroCluster['status']['steps']>
  readonly isDeletionRequested?: boolean
  readonly isSilent?: boolean
}

function cluster(looks: Looks): SpectroCluster {
  const { wanted = 2, number, reason, status = 'False', state = 'Running', steps = [] } = looks
  return {
    metadata: { lastModifiedTimestamp: '2026-01-31T08:00:00Z' },
    spec: { number: wanted },
    status: {
      ...{ state, steps, isDeletionRequested: looks.isDeletionRequested === true },
      conditions: [
        ...(reason === undefined
          ? []
          : [{ type: 'Wanted', status, reason, message: 'why', observedGeneration: number }]),
        { type: 'HostSilent', status: looks.isSilent === true ? 'True' : 'False', message: 'silent' },
      ],
    },
  } as unknown as SpectroCluster
}

describe('what a look at a cluster means', () => {
  it.each<[string, Looks, ReturnType<typeof verdictOf>]>([
    ['nothing was said', {}, 'goesOn'],
    ['the last change is applied', { reason: 'Applied', number: 2 }, 'applied'],
    ['the change before is applied', { reason: 'Applied', number: 1 }, 'goesOn'],
    [
      'a deletion is wanted of what is applied',
      { reason: 'Applied', number: 2, isDeletionRequested: true },
      'goesOn',
    ],
    ['a download is tried again', { reason: 'DownloadFailed', number: 2 }, 'goesOn'],
    ['the change before was refused', { reason: 'Refused', number: 1 }, 'goesOn'],
    ['a host of an older version refuses', { reason: 'Refused' }, 'goesOn'],
    [
      'the change is refused',
      { reason: 'Refused', number: 2 },
      { failure: 'the host has refused it: why', exitName: 'failed' },
    ],
    [
      'content is missing',
      { reason: 'ContentMissing', number: 2 },
      { failure: 'content is missing on the host: why', exitName: 'failed' },
    ],
    [
      'the last change was applied by a host that is silent',
      { reason: 'Applied', number: 2, isSilent: true },
      { failure: 'number 2 was applied, and since then: silent', exitName: 'hostSilent' },
    ],
    [
      'the change before was applied by a host that is silent',
      { reason: 'Applied', number: 1, isSilent: true },
      { failure: 'number 2 waits: silent', exitName: 'hostSilent' },
    ],
    [
      'a deletion waits for a host that is silent',
      { reason: 'Applied', number: 1, isDeletionRequested: true, isSilent: true },
      { failure: 'number 2 waits: silent', exitName: 'hostSilent' },
    ],
    [
      'a silent host has refused it before',
      { reason: 'Refused', number: 2, isSilent: true },
      { failure: 'the host has refused it: why', exitName: 'failed' },
    ],
    [
      'a deletion met a change of the host',
      { reason: 'NewerOnHost', number: 2, isDeletionRequested: true },
      {
        failure: expect.stringMatching(
          /^the host .*cluster delete, .*cluster apply --cancel-deletion: why/,
        ) as string,
        exitName: 'failed',
      },
    ],
  ])('%s', (_, looks, verdict) => {
    expect(verdictOf(cluster(looks))).toEqual(verdict)
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

  it('have no condition of another change than the last one', () => {
    const refused = { number: 1, reason: 'Refused' }
    expect(reasons(undefined, { ...refused, isDeletionRequested: true, state: 'Deleting' })).toEqual([
      ...['Wanted 10:00', 'Deleting 10:00'],
    ])
    expect(reasons({ ...refused, wanted: 1 }, { ...refused, wanted: 2 })).toEqual(['Wanted 10:00'])
    // The same words are news where they are about the next change.
    expect(reasons(refused, { ...refused, number: 2 })).toEqual(['Refused 10:00'])
  })
})
