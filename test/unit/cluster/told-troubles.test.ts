import { describe, expect, it } from 'vitest'
import type { Observed, Trouble } from '../../../src/cluster/loop/observed.ts'
import { sinceSeen, tell, type Seen } from '../../../src/cluster/loop/seen.ts'
import type { Deadline } from '../../../src/cluster/loop/status.ts'
import { appliedPack, runningHost, wantedCluster, wantedPack } from '../../support/cluster-parts.ts'

const web = wantedPack('web')
const desired = wantedCluster({ packs: [web] })
const running = runningHost(desired)
const status = { state: 'Running', phase: 'Running', reason: '', health: { status: 'Healthy' } } as const

const crashing: Trouble = {
  ...{ reason: 'Crashing', message: 'it ended with exit code 3', namespace: 'shop', pod: 'web-1' },
  ...{ workload: 'Deployment/web', container: 'app' },
}
const noImage: Trouble = { ...crashing, reason: 'ImagePull', message: 'ErrImagePull: not found' }
const withTroubles = (...troubles: Trouble[]): Observed => ({
  ...running,
  packs: new Map([[web.id, { ...appliedPack(web, true), ...(troubles.length > 0 ? { troubles } : {}) }]]),
})

interface More {
  readonly now?: number
  readonly deadline?: Deadline
  readonly of?: typeof desired
}

/** What is told of pods, beginning with what was told before. */
function look(before: Seen, observed: Observed, { now = 0, deadline, of = desired }: More = {}) {
  const { events, seen } = tell(before, {
    ...{ desired: of, observed, status, isDeleting: false, stuck: '', deadline, now },
  })
  const said = events.filter(({ reason }) => reason.startsWith('Pods'))
  return { said: said.map(({ reason, message }) => `${reason}: ${message}`), events: said, seen }
}
const { seen: calm } = look({}, running)

describe('a pod that does not run', () => {
  it('is told once, about its pack, however often it is restarted or made anew', () => {
    const first = look(calm, withTroubles(crashing))
    expect(first.events).toEqual([
      {
        reason: 'PodsFailing',
        message: 'shop/web-1, container app: Crashing: it ended with exit code 3',
        object: { kind: 'pack', name: web.id },
      },
    ])
    const again = look(first.seen, withTroubles({ ...crashing, pod: 'web-2', message: 'exit code 4' }))
    expect(again.said).toEqual([])
    // A restart of the daemon reads what was told, and a state that is the same is no write.
    expect(again.seen).toEqual(first.seen)
    expect(look(JSON.parse(JSON.stringify(first.seen)) as Seen, withTroubles(crashing)).said).toEqual([])
  })

  it('is told with the time after which its revision is taken back', () => {
    const deadline = { leftMs: 252_000, action: 'takenBack' } as const
    expect(look(calm, withTroubles(noImage), { deadline }).said).toEqual([
      'PodsFailing: shop/web-1, container app: ImagePull: ErrImagePull: not found; the revision is taken back in 4m12s unless it runs',
    ])
    expect(look(calm, withTroubles(noImage), { deadline: { ...deadline, action: 'stuck' } }).said).toEqual([
      'PodsFailing: shop/web-1, container app: ImagePull: ErrImagePull: not found; an operator is needed in 4m12s unless it runs',
    ])
  })

  it('is told again for another reason and for another container', () => {
    const first = look(calm, withTroubles(crashing))
    expect(look(first.seen, withTroubles(crashing, noImage)).said).toHaveLength(1)
    expect(look(first.seen, withTroubles(crashing, { ...crashing, container: 'log' })).said).toHaveLength(1)
    expect(
      look(first.seen, withTroubles(crashing, { ...crashing, workload: 'Deployment/db' })).said,
    ).toHaveLength(1)
  })

  it('is told to be over at once where its cause is gone', () => {
    const first = look(calm, withTroubles(noImage))
    const over = look(first.seen, running)
    expect(over.events).toEqual([
      {
        reason: 'PodsRecovered',
        message: 'shop/Deployment/web, container app: ImagePull is over',
        object: { kind: 'pack', name: web.id },
      },
    ])
    expect(look(over.seen, running).said).toEqual([])
  })

  it('that crashes is told to be over when it has run for a minute, since it runs between its crashes', () => {
    const first = look(calm, withTroubles(crashing))
    const between = look(first.seen, running, { now: 100_000 })
    expect(between.said).toEqual([])
    expect(look(between.seen, running, { now: 130_000 }).seen).toEqual(between.seen)
    const again = look(between.seen, withTroubles(crashing), { now: 130_000 })
    expect(again.said).toEqual([])
    const later = look(again.seen, running, { now: 200_000 })
    expect(look(later.seen, running, { now: 259_000 }).said).toEqual([])
    expect(look(later.seen, running, { now: 260_000 }).said).toEqual([
      'PodsRecovered: shop/Deployment/web, container app: Crashing is over',
    ])
    // Nor does a clock that was set back keep it.
    expect(look(later.seen, running, { now: 0 }).said).toHaveLength(1)
  })

  it('is neither told nor over while the API server does not answer', () => {
    const first = look(calm, withTroubles(noImage))
    const silent = { ...running, engine: { ...running.engine, api: 'silent' as const } }
    const during = look(first.seen, silent)
    expect(during.said).toEqual([])
    expect(look(during.seen, withTroubles(noImage)).said).toEqual([])
  })

  it('of CoreDNS is told about the pod, since it has no pack', () => {
    const dns: Trouble = {
      ...crashing,
      namespace: 'kube-system',
      pod: 'coredns-1',
      workload: 'Deployment/coredns',
    }
    const observed = {
      ...running,
      engine: { ...running.engine, troubles: [{ ...dns, reason: 'ImagePull' as const }] },
    }
    const first = look(calm, observed)
    expect(first.events[0]?.object).toEqual({ kind: 'Pod', name: 'coredns-1', namespace: 'kube-system' })
    expect(look(first.seen, running).events[0]?.object).toEqual({
      ...{ kind: 'Deployment', name: 'coredns', namespace: 'kube-system' },
    })
  })

  it('of a pack that is gone is not told to be over', () => {
    const first = look(calm, withTroubles(noImage))
    const without = wantedCluster({ packs: [] })
    const after = look(first.seen, { ...running, packs: new Map() }, { of: without })
    expect(after.said).toEqual([])
    expect(look(after.seen, running).said).toEqual([])
  })
})

describe('a pod that does not run in several revisions', () => {
  it('is told again for each revision, whose operator wants to know', () => {
    const first = look(calm, withTroubles(crashing))
    const next = look(first.seen, withTroubles(crashing), {
      of: wantedCluster({ packs: [web], generation: 2 }),
    })
    expect(next.said).toEqual(['PodsFailing: shop/web-1, container app: Crashing: it ended with exit code 3'])
    // What an earlier version has stored has no revision: that is no news.
    const { troubles = [] } = first.seen
    const old = {
      ...first.seen,
      troubles: troubles.map(({ pack, reason, of, container }) => ({ pack, reason, of, container })),
    }
    expect(look(old, withTroubles(crashing)).said).toEqual([])
  })

  it('is there since it was first observed, whatever Kubernetes says of its last start', () => {
    const at = (sinceTimestamp: string) => ({ ...crashing, sinceTimestamp })
    const first = look(calm, withTroubles(at('2026-01-31T08:00:00Z')))
    const later = at('2026-01-31T08:05:00Z')
    const { seen } = look(first.seen, withTroubles(later))
    expect(seen).toEqual(first.seen)
    const shown = { ...later, pack: web.id }
    expect(sinceSeen([shown], seen)).toEqual([{ ...shown, sinceTimestamp: '2026-01-31T08:00:00Z' }])
    expect(sinceSeen([{ ...shown, reason: 'NoRoom' }], seen)[0]?.sinceTimestamp).toBe('2026-01-31T08:05:00Z')
  })
})
