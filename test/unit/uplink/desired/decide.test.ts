import { describe, expect, it } from 'vitest'
import { decide, type ClusterNow, type DesiredInput } from '../../../../src/uplink/desired/decide.ts'
import type { KeptOrder } from '../../../../src/uplink/desired/desired-store.ts'

const [uid, otherUid] = ['0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a11', '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22']
const announced = (number: number, sum = 'a', of?: string) => ({
  ...{ number, etag: `${number}-${sum.repeat(32)}`, uid: of },
})
const kept = (more: Partial<KeptOrder> = {}): KeptOrder => ({
  ...{ tenantUid: 't1', uid, name: 'edge-1', number: 3, etag: announced(3).etag, outcome: 'applied' },
  ...{ message: '', accepted: 3, revision: 2, ...more },
})
const cluster = (newest: Partial<ClusterNow['newest']> = {}, more: Partial<ClusterNow> = {}): ClusterNow => ({
  ...{ uid, name: 'edge-1', isDeleting: false },
  newest: { revision: 2, platformNumber: 3, outcome: 'good', reason: '', ...newest },
  active: { revision: newest.revision ?? 2, outcome: 'good' },
  ...more,
})
const on = (input: Partial<DesiredInput>) => {
  const decision = decide({
    ...{ announced: undefined, tenantUid: 't1', kept: undefined, cluster: undefined },
    ...{ hasNewContent: false, seenEtag: undefined, ...input },
  })
  if (decision.kind !== 'rest') return decision.kind
  expect(decision.condition?.number).toBe(decision.condition && (input.announced ?? input.kept)?.number)
  return decision.condition && `${decision.condition.reason} ${decision.condition.status}`
}

const local = cluster({ revision: 3, platformNumber: null })
const foreign = cluster({}, { uid: otherUid })

// Revision 3 has failed, and the host has gone back to 2.
const wentBack = (newest: Partial<ClusterNow['newest']>) =>
  cluster({ revision: 3, outcome: 'rolledBack', ...newest }, { active: { revision: 2, outcome: 'good' } })

describe('what is done about what the platform wants', () => {
  it.each<[string, Partial<DesiredInput>, string | undefined]>([
    ['nothing where nothing was ever wanted', {}, undefined],
    ['fetch the first', { announced: announced(1) }, 'fetch'],
    [
      'nothing at the same number',
      { announced: announced(3), kept: kept(), cluster: cluster() },
      'Applied True',
    ],
    ['fetch a higher one', { announced: announced(4), kept: kept(), cluster: cluster() }, 'fetch'],
    ['not a lower one', { announced: announced(2), kept: kept(), cluster: cluster() }, 'NewerOnHost False'],
    [
      'not the same with another sum',
      { announced: announced(3, 'b'), kept: kept(), cluster: cluster() },
      'NewerOnHost False',
    ],
    ['say how it is also before a heartbeat', { kept: kept(), cluster: cluster() }, 'Applied True'],
    [
      'wait while the revision comes',
      { announced: announced(3), kept: kept(), cluster: cluster({ outcome: 'applying' }) },
      'Applying Unknown',
    ],
    [
      'say that the revision failed',
      { announced: announced(3), kept: kept(), cluster: cluster({ outcome: 'rolledBack' }) },
      'Refused False',
    ],
    [
      'say that what was there already is applied, after a newer one has failed',
      {
        announced: announced(5),
        kept: kept({ number: 5, etag: announced(5).etag, accepted: 5 }),
        cluster: wentBack({ platformNumber: 4 }),
      },
      'Applied True',
    ],
    [
      'say so too where the newer one was wanted here',
      { announced: announced(3), kept: kept(), cluster: wentBack({ platformNumber: null }) },
      'Applied True',
    ],
    [
      'say that values are missing',
      { announced: announced(3), kept: kept(), cluster: cluster({ outcome: 'held' }) },
      'Refused False',
    ],
    [
      'not fetch again what was refused',
      { announced: announced(3), kept: kept({ outcome: 'refused' }), cluster: cluster() },
      'Refused False',
    ],
    [
      'fetch after a refusal what is higher',
      { announced: announced(4), kept: kept({ outcome: 'refused' }) },
      'fetch',
    ],
    [
      'wait for content',
      { announced: announced(3), kept: kept({ outcome: 'contentMissing' }) },
      'ContentMissing False',
    ],
    [
      'try again when content has come',
      { announced: announced(3), kept: kept({ outcome: 'contentMissing' }), hasNewContent: true },
      'fetch',
    ],
    [
      'not make again what was deleted here',
      { announced: announced(3), kept: kept() },
      'DeletedOnHost False',
    ],
    [
      'the same while it is being deleted here',
      { announced: announced(3), kept: kept(), cluster: cluster({}, { isDeleting: true }) },
      'DeletedOnHost False',
    ],
    ['make it again at a higher number', { announced: announced(4), kept: kept() }, 'fetch'],
    [
      'wait for the end of a deletion',
      {
        announced: announced(3),
        kept: kept({ outcome: 'deleting' }),
        cluster: cluster({}, { isDeleting: true }),
      },
      'Deleting Unknown',
    ],
    [
      'wait for it also where the last revision was wanted here',
      {
        announced: announced(3),
        kept: kept({ outcome: 'deleting' }),
        cluster: cluster({ revision: 9, platformNumber: null }, { isDeleting: true }),
      },
      'Deleting Unknown',
    ],
    ['note the end of a deletion', { announced: announced(3), kept: kept({ outcome: 'deleting' }) }, 'gone'],
    ['nothing after it', { announced: announced(3), kept: kept({ outcome: 'deleted' }) }, 'Deleted True'],
    [
      'look at a lower number after it: another cluster begins at 1',
      { announced: announced(1), kept: kept({ outcome: 'deleted' }) },
      'fetch',
    ],
    [
      'not look twice',
      { announced: announced(1), kept: kept({ outcome: 'deleted' }), seenEtag: announced(1).etag },
      'NewerOnHost False',
    ],
    [
      'leave a cluster that is another',
      { announced: announced(1, 'a', uid), cluster: foreign },
      'ClusterExists False',
    ],
    [
      'leave a cluster that is another, after one of the platform',
      { announced: announced(4, 'a', uid), kept: kept(), cluster: foreign },
      'ClusterExists False',
    ],
    [
      'look whether a cluster of which nothing is kept is the wanted one',
      { announced: announced(1), cluster: cluster() },
      'fetch',
    ],
    ['know it by its uid', { announced: announced(1, 'a', uid), cluster: cluster() }, 'fetch'],
    [
      'not look again',
      { announced: announced(3), kept: kept({ outcome: 'clusterExists' }), cluster: foreign },
      'ClusterExists False',
    ],
    [
      'continue when the other cluster is gone',
      { announced: announced(3), kept: kept({ outcome: 'clusterExists' }) },
      'fetch',
    ],
    [
      'leave the cluster of another platform',
      { announced: announced(9), tenantUid: 't2', kept: kept(), cluster: cluster() },
      'ClusterExists False',
    ],
    ['begin anew with another platform', { announced: announced(1), tenantUid: 't2', kept: kept() }, 'fetch'],
    [
      'not fetch again what could not be read',
      { announced: announced(3), kept: kept({ outcome: 'refused', uid: '', tenantUid: '' }) },
      'Refused False',
    ],
    [
      'fetch another cluster after one that was deleted',
      { announced: announced(1, 'a', otherUid), kept: kept({ outcome: 'deleted' }) },
      'fetch',
    ],
    [
      'wait for the end of one cluster before another',
      { announced: announced(1, 'a', otherUid), kept: kept(), cluster: cluster() },
      'ClusterExists False',
    ],
    [
      'take a change on this host as newer',
      { announced: announced(3), kept: kept(), cluster: local },
      'note',
    ],
    [
      'take it as newer than what was wanted meanwhile',
      { announced: announced(5), kept: kept(), cluster: local },
      'note',
    ],
    [
      'leave it so',
      {
        announced: announced(5),
        kept: kept({ number: 5, etag: announced(5).etag, outcome: 'newerOnHost', revision: 3 }),
        cluster: local,
      },
      'NewerOnHost False',
    ],
    [
      'take it back when it is applied again',
      {
        announced: announced(6),
        kept: kept({ number: 5, etag: announced(5).etag, outcome: 'newerOnHost', revision: 3 }),
        cluster: local,
      },
      'fetch',
    ],
    [
      'know its own revision after a loss of the database',
      { announced: announced(3), kept: kept(), cluster: cluster({ platformNumber: null }) },
      'Applied True',
    ],
  ])('%s', (_, input, expected) => {
    expect(on(input)).toBe(expected)
  })

  it('what is noted of a change on this host has the number that was wanted then', () => {
    const decision = decide({
      ...{ announced: announced(5), tenantUid: undefined, kept: kept(), cluster: local },
      ...{ hasNewContent: false, seenEtag: undefined },
    })
    expect(decision).toMatchObject({
      kind: 'note',
      kept: { number: 5, outcome: 'newerOnHost', revision: 3, accepted: 3 },
    })
  })
})
