import { describe, expect, it } from 'vitest'
import { applicationsOf } from '../../../../src/cluster/packs/applications.ts'
import { newPack } from '../../../../src/cluster/packs/pack-store.ts'
import type { StepRecord } from '../../../../src/cluster/loop/step-store.ts'
import { createHideOf } from '../../../../src/definition/slots/secrets.ts'
import type { ClusterProfileDetail } from '../../../../src/definition/schemas.ts'
import {
  appliedPack,
  emptyHost,
  runningHost,
  wantedCluster,
  wantedPack,
} from '../../../support/cluster-parts.ts'

const web = {
  ...wantedPack('web'),
  charts: [{ name: 'web', version: '1.2.0', release: 'web', namespace: 'web', file: 'a', valuesFile: 'b' }],
  images: ['example.com/web:1'],
}
const second = { ...wantedPack('web'), id: 'p1/web/second', displayName: 'second' }
const later = { ...wantedPack('later', 1), id: 'p1/later' }
const wanted = wantedCluster({
  packs: [web, second, later],
  packTypes: { 'p1/edge-k8s': 'spectro', [web.id]: 'helm', [second.id]: 'manifest' },
})
const detail = (name: string, layer: string, displayName?: string) => ({
  ...{ name, layer, version: '1.0.0', values: 'a: 1', logo: '', images: [] },
  ...(displayName === undefined ? {} : { displayName }),
})
const profile: ClusterProfileDetail = {
  ...{ profileUid: 'p1', profileName: 'shop', profileVersion: '2.0.0', profileType: 'cluster' },
  ...{ profileDescription: 'All of it', profileTags: '', variables: [] },
  packs: [
    ...[detail('edge-native-byoi', 'os'), detail('edge-k8s', 'k8s')],
    ...[detail('web', 'addon'), detail('web', 'addon', 'second'), detail('later', 'addon')],
  ],
}
const step = (key: string, more: Partial<StepRecord>): StepRecord => ({
  ...{
    key,
    title: `Do ${key}`,
    pack: web.id,
    kind: 'call',
    isDeletion: 0,
    timeoutMs: 1,
    state: 'running',
    failures: 0,
  },
  ...{ reason: '', startedAt: 1_000, endedAt: null, retryMs: null, cursor: 0 },
  ...more,
})
const hide = createHideOf(['correct horse'])
type Input = Partial<Parameters<typeof applicationsOf>[0]>
const packsOf = (more: Input) =>
  applicationsOf({
    ...{ profiles: [profile], desired: wanted, given: [], observed: emptyHost, records: [], steps: [], hide },
    ...more,
  }).clusterProfileTemplates[0]?.packs ?? []
const webOf = (more: Input) => packsOf(more)[2]
const applied = { ...newPack(web.id), appliedDigest: web.digest, partDigest: web.digest, startedAt: 0 }

describe('the applications of a cluster', () => {
  it('are the profiles with all their packs, also those of the infrastructure', () => {
    const [template] = applicationsOf({
      ...{
        profiles: [profile],
        desired: wanted,
        given: [],
        observed: undefined,
        records: [],
        steps: [],
        hide,
      },
    }).clusterProfileTemplates
    expect(template).toMatchObject({
      ...{ uid: 'p1', name: 'shop', type: 'cluster', version: '2.0.0', description: 'All of it' },
      packs: [
        { name: 'edge-native-byoi', layer: 'os', status: 'Available' },
        { name: 'edge-k8s', layer: 'k8s', type: 'spectro', status: 'Pending' },
        { name: 'web', layer: 'addon', type: 'helm', status: 'Pending', values: 'a: 1' },
        { name: 'web', displayName: 'second', type: 'manifest', status: 'Pending' },
        { name: 'later', status: 'Pending' },
      ],
    })
  })
  it('mask a sensitive value in why a pack fails and in names of its images', () => {
    const image = 'example.com/correct horse:1'
    const given = { ...web, images: [image] }
    const steps = [step('a', { state: 'failed', reason: `cannot pull ${image}` })]
    const [, , shown] = packsOf({ desired: wantedCluster({ packs: [given] }), steps })
    expect(JSON.stringify(shown)).not.toContain('correct horse')
    expect(shown?.contents.map(({ name }) => name)).toContain('example.com/********:1')
    expect(shown?.conditions[1]?.message).toBe('Do a: cannot pull example.com/********:1')
  })
  it('have no times before a pack is begun', () => {
    expect(webOf({})).not.toHaveProperty('startTime')
    expect(webOf({})).not.toHaveProperty('endTime')
  })
  it('have the variables of their profile with the values of this cluster', () => {
    const variables = [
      { name: 'given', defaultValue: 'a' },
      { name: 'empty', defaultValue: 'b' },
      { name: 'fixed', defaultValue: 'c', immutable: true },
      { name: 'chosen', options: [{ value: 'd' }, { value: 'e', default: true }] },
      { name: 'left' },
    ]
    const given = [
      { name: 'given', profileUid: 'p1', value: '********' },
      { name: 'empty', profileUid: '', value: '' },
      { name: 'fixed', profileUid: '', value: '' },
    ]
    const [template] = applicationsOf({
      ...{ desired: wanted, given, observed: undefined, records: [], steps: [], hide },
      profiles: [{ ...profile, variables }],
    }).clusterProfileTemplates
    expect(template?.variables.map(({ name, value }) => `${name} ${value}`)).toEqual([
      ...['given ********', 'empty ', 'fixed c', 'chosen e', 'left '],
    ])
  })
  it('say what a pack waits for that is not begun: Kubernetes with what failed of it, then packs that come before', () => {
    const running = runningHost(wanted)
    const messageOf = (more: Input) => packsOf({ observed: running, ...more })[4]?.conditions[1]?.message
    expect(messageOf({ observed: emptyHost })).toBe('it waits for Kubernetes, which is not set up yet')
    const init = step('init', { pack: '', state: 'failed', failures: 1, reason: 'the port 6443 is taken' })
    expect(messageOf({ observed: emptyHost, steps: [init] })).toBe(
      'it waits for Kubernetes, which is not set up yet: Do init: the port 6443 is taken',
    )
    const failed = step('a', { pack: second.id, state: 'failed', failures: 1, reason: 'no image' })
    expect(messageOf({ steps: [step('b', {}), failed] })).toBe(
      'it waits for the pack web/second, which is Failed: Do a: no image, and for 1 more',
    )
    const waited = { ...applied, availableDigest: web.digest, endedAt: 5_000 }
    const down = { ...running, packs: new Map([[second.id, appliedPack(second, false)]]) }
    const late = { ...applied, id: second.id }
    expect(messageOf({ records: [waited, late], observed: down })).toBe(
      'it waits for the pack web/second, which is Applied: Deployment web: 0 of 1 replicas are available',
    )
    // What was available once holds up nothing.
    const all = [waited, { ...waited, id: second.id }]
    expect(messageOf({ records: all, observed: down })).toBe('it is not begun yet')
  })
  it('name the step that runs, and what failed', () => {
    expect(webOf({ steps: [step('a', {})] })).toMatchObject({
      ...{ status: 'Applying', startTime: '1970-01-01T00:00:01.000Z' },
      conditions: [
        { type: 'Applied', status: 'False', reason: 'Applying', message: 'Do a' },
        { type: 'Available', status: 'False', reason: 'Applying', message: 'Do a' },
      ],
    })
    expect(webOf({ steps: [step('a', { state: 'failed', reason: 'no disk', failures: 1 })] })).toMatchObject({
      status: 'Failed',
      conditions: [{ message: 'Do a: no disk' }, { message: 'Do a: no disk' }],
    })
  })
  it('are Applied until the workloads are available, then Available, and Unavailable when one goes down', () => {
    const down = { ...emptyHost, packs: new Map([[web.id, appliedPack(web, false)]]) }
    const up = { ...emptyHost, packs: new Map([[web.id, appliedPack(web, true)]]) }
    const waited = { ...applied, availableDigest: web.digest, endedAt: 5_000 }
    expect(webOf({ records: [applied], observed: down })).toMatchObject({
      status: 'Applied',
      conditions: [
        { type: 'Applied', status: 'True', reason: 'Applied', message: '' },
        { type: 'Available', status: 'False', message: 'Deployment web: 0 of 1 replicas are available' },
      ],
    })
    expect(webOf({ records: [waited], observed: up })).toMatchObject({
      ...{ status: 'Available', startTime: '1970-01-01T00:00:00.000Z', endTime: '1970-01-01T00:00:05.000Z' },
      conditions: [{ status: 'True' }, { status: 'True' }],
    })
    expect(webOf({ records: [waited], observed: down })).toMatchObject({ status: 'Unavailable' })
  })
  it('list charts and images; a chart is completed when it is installed', () => {
    const contents = [
      { contentType: 'chart', name: 'web:1.2.0', syncStatus: 'pending' },
      {
        contentType: 'image',
        name: 'example.com/web:1',
        syncStatus: 'completed',
        syncMsg: 'in the content of this host',
      },
    ]
    expect(webOf({})?.contents).toEqual(contents)
    const installed = { ...newPack(web.id), partDigest: web.digest, doneSteps: ['pack p1/web chart web/web'] }
    expect(webOf({ records: [installed] })?.contents[0]).toMatchObject({ syncStatus: 'completed' })
  })
  it('say of Kubernetes what the engine sees', () => {
    const running = runningHost(wanted)
    const statusOf = (engine: object) =>
      packsOf({ observed: { ...running, engine: { ...running.engine, ...engine } } })[1]
    expect(statusOf({})).toMatchObject({ status: 'Available' })
    expect(statusOf({ controlPlane: 'absent' })).toMatchObject({ status: 'Applying' })
    expect(statusOf({ api: 'silent' })).toMatchObject({ status: 'Unavailable' })
    expect(statusOf({ node: { name: 'n', isReady: false, message: 'no network' } })).toMatchObject({
      status: 'Applied',
      conditions: [{ status: 'True' }, { status: 'False', message: 'the node is not ready: no network' }],
    })
  })
})
