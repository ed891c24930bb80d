import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEventLog, type StoredEventLog } from '../../../../src/cluster/events/event-log.ts'
import { createEventList, eventList, type EventList } from '../../../../src/cluster/events/event-list.ts'
import { reasons, type ReasonName } from '../../../../src/cluster/events/reasons.ts'
import type { Event } from '../../../../src/cluster/events/schemas.ts'
import { createHideOf } from '../../../../src/definition/slots/secrets.ts'
import type { KubernetesClient, KubernetesObject } from '../../../../src/kubernetes/client.ts'
import { createContinueTokens } from '../../../../src/lists/continue-token.ts'
import { compareValues } from '../../../../src/lists/memory.ts'
import { fieldAt } from '../../../../src/lists/resource.ts'
import { openDatabase, type Database } from '../../../support/open-database.ts'
import { captureLog } from '../../../support/https-server.ts'
import { createRandom } from '../../../support/random.ts'
import { createTurningClock, type TurningClock } from '../../../support/turning-clock.ts'

let database: Database
let clock: TurningClock
let events: StoredEventLog
let list: EventList
let kubernetes: KubernetesObject[] | undefined
beforeEach(() => {
  const { log } = captureLog()
  database = openDatabase(':memory:', log)
  clock = createTurningClock(Date.UTC(2026, 0, 31, 8))
  events = createEventLog({ database, limits: { retentionDays: 90, maximum: 1_000 }, clock, log })
  kubernetes = []
  const client = { list: () => Promise.resolve(kubernetes ?? []) } as unknown as KubernetesClient
  list = createEventList({
    ...{ database, events, client: () => (kubernetes ? client : undefined), hostName: () => 'edge-1' },
    listTokens: createContinueTokens(Buffer.alloc(32, 1)),
    hide: () => createHideOf(['canary 0907']),
  })
})
afterEach(() => database.close())

let serial = 0
const podEvent = (at: number, fields: Record<string, unknown> = {}): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'Event', reason: 'Pulled', message: 'm', type: 'Normal' },
  metadata: { name: `k${(serial += 1)}`, uid: `k${serial}`, namespace: 'shop' },
  ...{ involvedObject: { kind: 'Pod', name: 'web', namespace: 'shop' }, source: { component: 'kubelet' } },
  lastTimestamp: new Date(at).toISOString(),
  ...fields,
})

/** All pages of a query. */
async function pages(parameters: Parameters<EventList['page']>[0], namespace = ''): Promise<Event[][]> {
  const found: Event[][] = []
  let token = ''
  do {
    const page = await list.page({ ...parameters, ...(token && { continue: token }) }, namespace)
    found.push(page.items as Event[])
    token = page.listmeta.continue
  } while (token !== '')
  return found
}

describe('the list of events', () => {
  it('events of edgehostd and of Kubernetes come together by time, the newest first', async () => {
    const start = clock.now()
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'one' })
    events.add({ clusterUid: 'c1', reason: 'HostRecorded', message: 'two' })
    kubernetes = [podEvent(start + 500), podEvent(start + 2_000)]
    clock.turn(1_000)
    const object = { kind: 'pack', name: 'p1/web', namespace: 'shop' }
    events.add({ clusterUid: 'c1', reason: 'PackFailed', message: 'three', object, step: 's' })
    const { items, listmeta, kubernetes: source } = await list.page({}, '')
    expect(items.map(({ metadata, reason }) => [metadata?.number, reason])).toEqual([
      [0, 'Pulled'],
      [3, 'PackFailed'],
      [0, 'Pulled'],
      [2, 'HostRecorded'],
      [1, 'Accepted'],
    ])
    expect(listmeta).toEqual({ continue: '', count: 5, limit: 5, offset: 5 })
    expect(source).toEqual({ state: 'read' })
    expect(items[1]).toEqual({
      metadata: {
        ...{ uid: 'edgehostd-3', name: 'edgehostd-3', number: 3 },
        creationTimestamp: '2026-01-31T08:00:01.000Z',
      },
      involvedObject: { kind: 'Cluster', uid: 'c1' },
      relatedObject: { kind: 'pack', name: 'p1/web' },
      ...{ reason: 'PackFailed', message: 'three', severity: 'Warning', clusterUid: 'c1', step: 's' },
      ...{ type: 'AddOnDeploymentDone', source: { component: 'edgehostd', host: 'edge-1' } },
    })
    expect(items[3]?.relatedObject).toEqual({ kind: 'machine', name: 'edge-1' })
    expect(items[4]?.relatedObject).toEqual({ kind: 'spectrocluster', uid: 'c1' })
  })

  it('sensitive values of the cluster are masked where Kubernetes quotes them, and in names of objects', async () => {
    kubernetes = [
      podEvent(clock.now(), {
        message: 'Failed to pull image "registry/canary 0907"',
        metadata: { name: 'web-canary 0907.17', uid: 'k0', namespace: 'shop' },
        involvedObject: { kind: 'Pod', name: 'web-canary 0907', namespace: 'shop' },
      }),
    ]
    const { items } = await list.page({}, '')
    expect(items).toMatchObject([
      {
        message: 'Failed to pull image "registry/********"',
        metadata: { name: 'web-********.17' },
        involvedObject: { name: 'web-********' },
      },
    ])
    const filters = 'involvedObject.name=web-canary 0907'
    expect((await list.page({ filters }, '')).items).toEqual([])
  })

  it('a namespace leaves only what is about objects in it', async () => {
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'one' })
    const object = { kind: 'Deployment', name: 'web', namespace: 'shop' }
    events.add({ clusterUid: 'c1', reason: 'Unhealthy', message: 'two', object })
    const { items, listmeta } = await list.page({}, 'shop')
    expect(items.map(({ message }) => message)).toEqual(['two'])
    expect(items[0]?.involvedObject).toEqual(object)
    expect(listmeta.count).toBe(1)
  })

  it('without Kubernetes the events of edgehostd are there, and the reply says so', async () => {
    kubernetes = undefined
    events.add({ clusterUid: 'c1', reason: 'Accepted', message: 'one' })
    const { items, kubernetes: source } = await list.page({}, '')
    expect(items).toHaveLength(1)
    expect(source).toEqual({ state: 'absent' })
  })

  it('a token of one namespace is refused with another', async () => {
    for (const message of ['one', 'two']) events.add({ clusterUid: 'c1', reason: 'StepProgress', message })
    const { listmeta } = await list.page({ limit: 1 }, '')
    await expect(list.page({ limit: 1, continue: listmeta.continue }, 'shop')).rejects.toMatchObject({
      details: { field: 'continue' },
    })
  })

  it('pages of any size, filter, order and offset give what one sorted list of all events gives', async () => {
    const random = createRandom(7)
    const names = Object.keys(reasons) as ReasonName[]
    for (let index = 0; index < 120; index += 1) {
      clock.turn(random.below(2) * 1_000)
      const object =
        random.below(3) === 0
          ? { object: { kind: ['pack', 'Pod'][random.below(2)] ?? '', name: `n${random.below(3)}` } }
          : {}
      events.add({
        ...{ clusterUid: `c${random.below(2)}`, reason: names[random.below(names.length)] ?? 'Accepted' },
        ...{ message: `m${index}`, ...object },
      })
      if (random.below(2) === 0)
        kubernetes?.push(podEvent(clock.now(), { type: ['Normal', 'Warning'][random.below(2)] }))
    }
    const all = (await pages({ limit: 50 })).flat()
    expect(new Set(all.map(({ metadata }) => metadata.uid)).size).toBe(120 + (kubernetes?.length ?? 0))
    const read = (event: Event, path: string) => fieldAt(eventList, path).read(event)
    const orders = ['', 'reason=1', 'metadata.creationTimestamp=1', 'severity=-1,metadata.uid=1']
    const filters: [string, (event: Event) => boolean][] = [
      ['', () => true],
      ['severity=Warning', ({ severity }) => severity === 'Warning'],
      ['involvedObject.kind=Cluster', ({ involvedObject }) => involvedObject.kind === 'Cluster'],
      ['relatedObject.name=n1', ({ relatedObject }) => relatedObject?.name === 'n1'],
      [
        'source.component=kubeletORinvolvedObject.name=n2',
        ({ source, involvedObject: { name } }) => source.component === 'kubelet' || name === 'n2',
      ],
    ]
    for (const orderBy of orders)
      for (const [filter, matches] of filters) {
        const terms = orderBy
          ? orderBy.split(',').map((term): [string, number] => {
              const [path = '', sign] = term.split('=')
              return [path, Number(sign)]
            })
          : ([
              ['metadata.creationTimestamp', -1],
              ['metadata.number', -1],
            ] as [string, number][])
        const last = terms.at(-1)?.[1] ?? 1
        const expected = all
          .filter(matches)
          .sort((one, two) => {
            for (const [path, sign] of [...terms, ['metadata.uid', last] as const]) {
              const difference = compareValues(read(one, path), read(two, path)) * sign
              if (difference !== 0) return difference
            }
            return 0
          })
          .map(({ metadata }) => metadata.uid)
        const limit = 1 + random.below(50)
        const query = { limit, ...(orderBy && { orderBy }), ...(filter && { filters: filter }) }
        const found = (await pages(query)).flat().map(({ metadata }) => metadata.uid)
        expect(found, JSON.stringify(query)).toEqual(expected)
        const offset = random.below(60)
        const { items, listmeta } = await list.page({ ...query, offset }, '')
        expect(items.map(({ metadata }) => metadata?.uid)).toEqual(expected.slice(offset, offset + limit))
        expect(listmeta.count).toBe(expected.length)
      }
  })
})
