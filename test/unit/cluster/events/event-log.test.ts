import { afterEach, describe, expect, it } from 'vitest'
import {
  createEventLog,
  type EventLimits,
  type ClusterEvent,
  type NewClusterEvent,
  createEventStore,
} from '../../../../src/cluster/events/event-log.ts'
import { openDatabase } from '../../../support/open-database.ts'
import { captureLog } from '../../../support/https-server.ts'
import { createTurningClock, dayMs } from '../../../support/turning-clock.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

function setUp(limits: Partial<EventLimits> = {}) {
  const { log, texts } = captureLog()
  const database = openDatabase(':memory:', log)
  closing.push(() => database.sql.isOpen && database.close())
  const clock = createTurningClock(Date.UTC(2026, 0, 31, 8))
  const open = () =>
    createEventLog({ database, limits: { retentionDays: 90, maximum: 1_000, ...limits }, clock, log })
  /** Every stored event, the newest first. */
  const all = () => createEventStore(database).after(0, 10_000).toReversed()
  return { database, clock, texts, open, all, events: open() }
}

const event = (reason: NewClusterEvent['reason'], message = 'm', more: Partial<NewClusterEvent> = {}) => ({
  ...{ clusterUid: 'c1', reason, message },
  ...more,
})
const messages = (found: readonly ClusterEvent[]) => found.map(({ message }) => message)

/** Follows until `count` events have come. */
async function followed(
  { follow }: ReturnType<typeof setUp>['events'],
  since: number,
  count: number,
  onEach: () => void = () => undefined,
): Promise<ClusterEvent[]> {
  const end = new AbortController()
  const found: ClusterEvent[] = []
  const take = (each: ClusterEvent) => {
    found.push(each)
    onEach()
    if (found.length >= count) end.abort()
  }
  await follow(since, take, end.signal)
  return found
}

describe('the log of events', () => {
  it('an event has a number, the time, and the severity of its reason', () => {
    const { all, events } = setUp()
    events.add(event('Accepted', 'Cluster c'))
    events.add(event('StepFailed', 'no', { step: 'kubeadm-init' }))
    events.add(event('PackAvailable', 'up', { object: { kind: 'pack', name: 'web', namespace: 'shop' } }))
    const at = Date.UTC(2026, 0, 31, 8)
    expect(all()).toEqual([
      {
        ...{ id: 3, at, clusterUid: 'c1', reason: 'PackAvailable', severity: 'Normal', message: 'up' },
        object: { kind: 'pack', name: 'web', namespace: 'shop' },
      },
      {
        ...{ id: 2, at, clusterUid: 'c1', reason: 'StepFailed', severity: 'Warning', message: 'no' },
        step: 'kubeadm-init',
      },
      { id: 1, at, clusterUid: 'c1', reason: 'Accepted', severity: 'Normal', message: 'Cluster c' },
    ])
  })

  it('an event that equals the last one is not stored again, also after a restart', () => {
    const { all, events, open } = setUp()
    events.add(event('ApiSilent'))
    events.add(event('ApiSilent'))
    open().add(event('ApiSilent'))
    expect(all()).toHaveLength(1)
    for (const more of [{ step: 's' }, { object: { kind: 'pack', name: 'p' } }, { clusterUid: 'c2' }])
      events.add(event('ApiSilent', 'm', more))
    events.add(event('ApiSilent', 'other'))
    expect(all()).toHaveLength(5)
  })

  it('an event of a transaction that was rolled back does not count as the last', () => {
    const { all, events, database } = setUp()
    const add = () => events.add(event('Accepted'))
    expect(() =>
      database.transaction(() => {
        add()
        throw new Error('no')
      }),
    ).toThrow('no')
    expect(all()).toEqual([])
    add()
    expect(all()).toHaveLength(1)
  })

  it('a disk that cannot be written is named in the journal and stops nothing', () => {
    const { all, events, database, texts } = setUp()
    database.sql.exec('PRAGMA query_only = ON')
    events.add(event('Accepted'))
    expect(texts()).toEqual(['an event of the cluster could not be stored'])
    database.sql.exec('PRAGMA query_only = OFF')
    events.add(event('Accepted'))
    expect(all()).toHaveLength(1)
  })

  it('a message is cut where it is longer than 4096 characters', () => {
    const { all, events } = setUp()
    events.add(event('StepFailed', 'x'.repeat(10_000)))
    expect(all()[0]?.message).toHaveLength(4_096)
  })
})

describe('following events', () => {
  it('a reader gets the stored events after its number, and then each new one once and in order', async () => {
    const parts = setUp()
    const { events } = parts
    for (let index = 1; index <= 250; index += 1) events.add(event('StepProgress', String(index)))
    let next = 250
    const found = await followed(events, 10, 250, () => {
      // New events come while stored ones are read, and after them.
      if (next < 260) events.add(event('StepProgress', String((next += 1))))
    })
    expect(messages(found)).toEqual(Array.from({ length: 250 }, (_none, index) => String(index + 11)))
  })

  it('a reader that waits is woken by an event', async () => {
    const { events } = setUp()
    const reading = followed(events, 0, 2)
    await Promise.resolve()
    events.add(event('Accepted', 'one'))
    setImmediate(() => events.add(event('Running', 'two')))
    expect(messages(await reading)).toEqual(['one', 'two'])
  })

  it('a slow reader gets the next event when it is done with the one before', async () => {
    const { events } = setUp()
    for (const message of ['one', 'two']) events.add(event('StepProgress', message))
    const end = new AbortController()
    const order: string[] = []
    await events.follow(
      0,
      async ({ message }) => {
        order.push(`${message} begins`)
        await new Promise(setImmediate)
        order.push(`${message} ends`)
        if (message === 'two') end.abort()
      },
      end.signal,
    )
    expect(order).toEqual(['one begins', 'one ends', 'two begins', 'two ends'])
  })

  it('a reader that has a number of a database that is gone gets everything', async () => {
    const { events } = setUp()
    events.add(event('Accepted', 'one'))
    expect(messages(await followed(events, 999, 1))).toEqual(['one'])
  })

  it('a reader with the number of the last event waits for the next, also when the last was removed', async () => {
    const { events, clock } = setUp()
    events.add(event('Accepted', 'one'))
    clock.turn(91 * dayMs)
    events.retain()
    const reading = followed(events, 1, 1)
    events.add(event('Running', 'two'))
    expect((await reading).map(({ id }) => id)).toEqual([2])
  })

  it('following ends with its signal while it waits', async () => {
    const { events } = setUp()
    const end = new AbortController()
    const reading = events.follow(0, () => undefined, end.signal)
    end.abort()
    await expect(reading).resolves.toBeUndefined()
  })
})

describe('conditions', () => {
  it('a condition keeps the time of its change while events only repeat it', () => {
    const { events, clock } = setUp()
    const start = clock.now()
    events.add(event('ApiAnswers', 'yes'))
    clock.turn(1_000)
    events.add(event('ApiSilent', 'no'))
    clock.turn(1_000)
    events.add(event('ApiSilent', 'still no'))
    expect(events.conditions()).toEqual([
      {
        ...{ type: 'ApiAnswers', status: 'Unknown', reason: 'ApiSilent', message: 'still no' },
        ...{ transitionAt: start + 1_000, probeAt: start + 2_000 },
      },
    ])
  })

  it('an event without a status leaves the condition as it is', () => {
    const { events } = setUp()
    events.add(event('PackApplying', 'web'))
    events.add(event('PackAvailable', 'web'))
    expect(events.conditions()[0]).toMatchObject({ type: 'AddOnDeploymentDone', reason: 'PackApplying' })
  })

  it('conditions come in the order of the table and outlive the retention of their events', () => {
    const { all, events, clock } = setUp()
    for (const reason of ['NodeReady', 'Accepted', 'HostRecorded'] as const) events.add(event(reason))
    clock.turn(91 * dayMs)
    events.add(event('Running'))
    events.retain()
    expect(all()).toHaveLength(1)
    expect(events.conditions().map(({ type }) => type)).toEqual([
      'ClusterAccepted',
      'HostRecorded',
      'ControlPlaneNodeAdditionDone',
      'ClusterRunning',
    ])
  })

  it('a new cluster begins without the conditions of the one before; events of both stay', () => {
    const { all, events } = setUp()
    for (const reason of ['Accepted', 'Running', 'Deleted'] as const) events.add(event(reason))
    events.add(event('Accepted', 'm', { clusterUid: 'c2' }))
    expect(events.conditions().map(({ type }) => type)).toEqual(['ClusterAccepted'])
    expect(all()).toHaveLength(4)
    expect(events.beforeNewestCluster()).toBe(3)
  })
})

describe('retention', () => {
  it('events older than the limit are removed, newer ones stay', () => {
    const { all, events, clock } = setUp({ retentionDays: 2 })
    events.add(event('Accepted', 'old'))
    clock.turn(1.5 * dayMs)
    events.add(event('Running', 'new'))
    clock.turn(dayMs)
    events.retain()
    expect(messages(all())).toEqual(['new'])
  })

  it('a log that grows stays near its maximum without a job', () => {
    const { all, events } = setUp({ maximum: 50 })
    for (let index = 0; index < 500; index += 1) events.add(event('StepProgress', String(index)))
    const left = all()
    expect(left.length).toBeGreaterThanOrEqual(50)
    expect(left.length).toBeLessThan(150)
    expect(left[0]?.message).toBe('499')
  })
})
