import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../../src/uplink/client.ts'
import type { DesiredStatus } from '../../../../src/uplink/desired/follow.ts'
import { createReports, type ClusterReport, type Deliver } from '../../../../src/uplink/desired/reports.ts'
import { captureLog } from '../../../support/https-server.ts'
import { createTurningClock } from '../../../support/turning-clock.ts'

const uid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a11'
const report = (more: Partial<ClusterReport> = {}): ClusterReport => ({
  ...{ uid, state: 'Running', revision: 2, message: '', steps: [], kubeconfig: 'apiVersion: v1' },
  conditions: [{ type: 'Accepted', status: 'True', lastProbeTime: '2026-01-31T08:00:00Z' }],
  packs: [{ name: 'web', profileUid: 'u1', version: '1.0.0', condition: { message: '' } }],
  ...more,
})

function createWorld() {
  const clock = createTurningClock()
  const { log, lines } = captureLog()
  const sent: { path: string; body: unknown }[] = []
  const world = {
    report: report() as ClusterReport | undefined,
    status: {
      ...{ uid, name: 'edge-1', number: 3, accepted: 3, seen: 4, download: undefined },
      condition: { status: 'True', reason: 'Applied', message: '', number: 3 },
    } as DesiredStatus,
    answer: (() => ({ status: 204 })) as (path: string) => Answer,
  }
  const reports = createReports({
    ...{ read: async () => world.report, desired: () => world.status, agentVersion: '1.2.3' },
    ...{ random: () => 0, clock, log },
  })
  const deliver: Deliver = async ({ path, body }) => {
    const name = path.replace(`/v1/spectroclusters/${uid}/`, '')
    sent.push({ path: name, body })
    return world.answer(name)
  }
  /** What a turn of the link sends after so many seconds. */
  const turn = async (seconds = 60, isBeat = true) => {
    clock.turn(seconds * 1_000)
    if (isBeat) reports.beat()
    sent.length = 0
    const failure = await reports.send(deliver, () => true)
    return { failure, paths: sent.map(({ path }) => path) }
  }
  const bodyOf = (name: string): unknown => sent.find(({ path }) => path === name)?.body
  return { ...{ world, reports, turn, sent, bodyOf, clock, lines, deliver } }
}

const all = ['heartbeat', 'status/conditions', 'packs/status', 'assets/kubeconfig']
const cause = (kind: 'busy' | 'route' | 'platform') => ({ cause: { kind, message: kind } }) as const

describe('reports of the cluster', () => {
  it('all are sent at first, then only the heartbeat, each minute', async () => {
    const { turn, bodyOf } = createWorld()
    expect((await turn()).paths).toEqual(all)
    expect(bodyOf('heartbeat')).toEqual({
      ...{
        agentVersion: '1.2.3',
        message: '',
        number: 3,
        seenNumber: 4,
        state: 'Running',
        revision: 2,
        steps: [],
      },
    })
    expect(bodyOf('status/conditions')).toMatchObject([
      { type: 'Accepted' },
      {
        ...{ type: 'Wanted', status: 'True', reason: 'Applied', observedGeneration: 3 },
        lastTransitionTime: expect.any(String) as string,
      },
    ])
    expect((await turn()).paths).toEqual(['heartbeat'])
  })

  it('what has changed is sent with the next turn, and not read more often than each ten seconds', async () => {
    const { turn, world, reports } = createWorld()
    await turn()
    world.report = report({ conditions: [{ type: 'Accepted', status: 'False' }] })
    expect((await turn(20, false)).paths).toEqual([])
    reports.wake()
    expect(reports.dueIn()).toBe(0)
    expect((await turn(0, false)).paths).toEqual(['status/conditions'])
    reports.wake()
    expect(reports.dueIn()).toBe(10_000)
    expect((await turn(9, false)).paths).toEqual([])
  })

  it('the kubeconfig is sent again where the platform has none', async () => {
    const { turn, world, reports } = createWorld()
    await turn()
    reports.forget()
    expect((await turn()).paths).toEqual(all.slice(0, 3))
    world.answer = (path) => ({ status: 204, ...(path === 'heartbeat' ? { lacksKubeconfig: true } : {}) })
    expect((await turn()).paths).toEqual(['heartbeat', 'assets/kubeconfig'])
  })

  it('the time of the last look at a condition is no change', async () => {
    const { turn, world, reports } = createWorld()
    await turn()
    world.report = report({
      conditions: [{ type: 'Accepted', status: 'True', lastProbeTime: '2026-01-31T09:00:00Z' }],
    })
    reports.wake()
    expect((await turn(20, false)).paths).toEqual([])
  })

  it('without a cluster on the host the condition alone says why; Deleted only where it is gone', async () => {
    const { turn, world, bodyOf } = createWorld()
    world.report = undefined
    world.status = {
      ...world.status,
      accepted: 0,
      condition: { status: 'False', reason: 'Refused', message: 'no', number: 3 },
    }
    expect((await turn()).paths).toEqual(['heartbeat', 'status/conditions'])
    expect(bodyOf('heartbeat')).not.toHaveProperty('state')
    world.status = {
      ...world.status,
      accepted: 3,
      condition: { status: 'True', reason: 'Deleted', message: '', number: 3 },
    }
    await turn()
    expect(bodyOf('heartbeat')).toMatchObject({ state: 'Deleted', number: 3, seenNumber: 4 })
    // The platform has forgotten it.
    world.status = { ...world.status, number: undefined }
    expect((await turn()).paths).toEqual([])
  })

  it('of a cluster that is not the wanted one nothing is told', async () => {
    const { turn, world, bodyOf } = createWorld()
    world.report = report({ uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a22', state: 'Running' })
    world.status = {
      ...world.status,
      condition: { status: 'False', reason: 'ClusterExists', message: '', number: 3 },
    }
    await turn()
    expect(bodyOf('heartbeat')).not.toHaveProperty('state')
  })

  it('where nothing is wanted nothing is sent', async () => {
    const { turn, world, reports } = createWorld()
    world.status = { ...world.status, uid: undefined, condition: undefined, number: undefined }
    expect((await turn()).paths).toEqual([])
    expect(reports.dueIn()).toBe(Infinity)
  })

  it('a platform that is busy, or does not know the cluster, does not end the turn; one that is not reached does', async () => {
    const { turn, world, reports, clock } = createWorld()
    world.answer = () => ({ status: 503, retryAfter: '30', ...cause('busy') })
    expect(await turn()).toEqual({ failure: undefined, paths: ['heartbeat'] })
    expect(reports.dueIn()).toBe(30_000)
    clock.turn(30_000)
    world.answer = () => ({ status: 404, ...cause('platform') })
    expect(await turn()).toEqual({ failure: undefined, paths: ['heartbeat'] })
    world.answer = () => cause('route')
    expect((await turn()).failure).toMatchObject(cause('route'))
    world.answer = () => ({ status: 204 })
    expect((await turn()).paths).toEqual(all)
  })

  it('a report that is refused holds up no other, and is not sent again until it changes', async () => {
    const { turn, world, lines } = createWorld()
    world.answer = (path) =>
      path === 'packs/status' ? { status: 400, ...cause('platform') } : { status: 204 }
    expect((await turn()).paths).toEqual(all)
    expect((await turn()).paths).toEqual(['heartbeat'])
    expect(JSON.stringify(lines)).toContain('refused a report')
  })

  it('after a login all are sent again but the kubeconfig', async () => {
    const { turn, reports } = createWorld()
    await turn()
    reports.forget()
    expect((await turn()).paths).toEqual(all.slice(0, 3))
  })

  it('is bounded', async () => {
    const { turn, world, bodyOf, sent } = createWorld()
    const long = 'x'.repeat(10_000)
    world.report = report({
      ...{ message: long, kubeconfig: 'k'.repeat(300_000) },
      conditions: Array.from({ length: 500 }, (_, n) => ({ type: `T${n}`, status: 'True', message: long })),
      packs: Array.from({ length: 2_000 }, () => ({
        name: 'p',
        profileUid: 'u',
        version: '1',
        condition: { message: long },
      })),
      steps: Array.from({ length: 2_000 }, () => ({ key: long, title: long, reason: long })),
    })
    expect((await turn()).paths).toEqual(all.slice(0, 3))
    expect(bodyOf('status/conditions')).toHaveLength(64)
    expect((bodyOf('status/conditions') as unknown[]).at(-1)).toMatchObject({ type: 'Wanted' })
    for (const { body } of sent) expect(JSON.stringify(body).length).toBeLessThan(262_144)
    const { packs } = bodyOf('packs/status') as { packs: unknown[] }
    expect(packs.length).toBeGreaterThan(100)
    const { steps, message } = bodyOf('heartbeat') as { steps: { key: string }[]; message: string }
    expect(steps.length).toBeGreaterThan(50)
    expect([steps[0]?.key.length, message.length]).toEqual([256, 2_048])
  })
})
