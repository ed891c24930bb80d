import { describe, expect, it } from 'vitest'
import { diffClusters, type DiffSide } from '../../../../src/cluster/desired/diff.ts'
import type { DesiredState, DesiredPack } from '../../../../src/cluster/desired/desired-state.ts'
import type { ClusterProfileDetail } from '../../../../src/definition/schemas.ts'
import { wantedCluster, wantedPack } from '../../../support/cluster-parts.ts'

const web: DesiredPack = {
  ...wantedPack('web', 1),
  namespaces: [{ name: 'shop', labels: { a: '1', b: '2' }, annotations: {} }],
  manifests: [
    { name: 'page', namespace: 'shop', file: 'page.jsonl', sum: 'm1' },
    { name: 'rules', namespace: 'shop', file: 'rules.jsonl', sum: 'm2' },
  ],
  charts: [
    {
      ...{ name: 'web', version: '1.0.0', release: 'web', namespace: 'shop', file: 'web.tgz', sum: 'c1' },
      ...{ valuesFile: 'web.yaml', valuesSum: 'v1' },
    },
  ],
}
const network = wantedPack('network')

const shownPack = (name: string, version = '1.0.0', values = '') =>
  ({ name, version, layer: 'addon', values, logo: '', images: [] }) as ClusterProfileDetail['packs'][number]

const profile = (
  packs: ClusterProfileDetail['packs'],
  variables: ClusterProfileDetail['variables'] = [],
): ClusterProfileDetail => ({
  ...{ profileUid: 'p1', profileName: 'shop', profileVersion: '1.0.0', profileType: 'cluster' },
  ...{ profileDescription: '', profileTags: '', packs, variables },
})

const side = (more: Partial<DesiredState> = {}, other: Partial<DiffSide> = {}): DiffSide => ({
  desired: wantedCluster({ packs: [network, web], ...more }),
  definition: { name: 'shop', version: '1.0.0', sha256: 'aa' },
  profiles: [profile([shownPack('system'), shownPack('network'), shownPack('web')])],
  given: [],
  ...other,
})

/** The web pack with another digest, as prepare makes it for any change of what is installed. */
const webWith = (more: Partial<DesiredPack>): DesiredPack => ({ ...web, digest: 'another', ...more })
const onlyPack = (after: DiffSide, before = side()) => {
  const { packs } = diffClusters(before, after)
  expect(packs).toHaveLength(1)
  return packs[0]!
}

describe('the diff of two revisions of a cluster', () => {
  it('is empty for equal ones, whatever the order of keys in labels is', () => {
    const same = { ...web, namespaces: [{ name: 'shop', labels: { b: '2', a: '1' }, annotations: {} }] }
    const labels = { one: '1', two: '2' }
    const { node } = wantedCluster()
    const turned = { ...node, labels: { two: '2', one: '1' } }
    const found = diffClusters(
      side({ node: { ...node, labels } }),
      side({ packs: [network, same], node: turned, generation: 2, folder: '/elsewhere' }),
    )
    expect(found).toEqual({ isEmpty: true, packs: [], variables: [], settings: {}, effects: [] })
  })

  it('has a pack whose values changed, with the chart that they belong to, and says which pods restart', () => {
    const charts = web.charts.map((chart) => ({ ...chart, valuesSum: 'v2' }))
    const after = side({ packs: [network, webWith({ charts })] })
    expect(onlyPack(after)).toMatchObject({
      ...{ id: 'p1/web', change: 'changed', fields: ['values', 'charts'], isApplied: true },
      ...{ fromVersion: '1.0.0', toVersion: '1.0.0', manifests: [], namespaces: [] },
      charts: [{ name: 'web', release: 'web', change: 'changed', valuesChanged: true }],
    })
    expect(diffClusters(side(), after).effects).toEqual([
      {
        ...{ target: 'pack', pack: 'p1/web', restarts: ['pods of it whose templates change'] },
        message: 'web is applied: charts web',
      },
    ])
  })

  it.each<[string, Partial<DesiredPack>, object]>([
    [
      'a changed, an added and a removed manifest',
      {
        manifests: [
          { ...web.manifests[0]!, sum: 'other' },
          { name: 'new', namespace: 'shop', file: 'n', sum: 'n' },
        ],
      },
      {
        fields: ['manifests'],
        manifests: [
          { name: 'page', change: 'changed' },
          { name: 'new', change: 'added' },
          { name: 'rules', change: 'removed' },
        ],
      },
    ],
    [
      'another version of a chart',
      { charts: [{ ...web.charts[0]!, version: '2.0.0', sum: 'c2' }] },
      {
        fields: ['charts'],
        charts: [{ change: 'changed', fromVersion: '1.0.0', toVersion: '2.0.0', valuesChanged: false }],
      },
    ],
    [
      'a release of another name, which is another one',
      { charts: [{ ...web.charts[0]!, release: 'shop' }] },
      {
        fields: ['charts'],
        charts: [
          { release: 'shop', change: 'added', toVersion: '1.0.0' },
          { release: 'web', change: 'removed', fromVersion: '1.0.0' },
        ],
      },
    ],
    [
      'labels of a namespace',
      { namespaces: [{ name: 'shop', labels: {}, annotations: {} }] },
      { fields: ['namespaces'], namespaces: [{ name: 'shop', change: 'changed' }] },
    ],
    ['another version', { version: '1.1.0' }, { fields: ['version', 'content'], toVersion: '1.1.0' }],
  ])('of a pack names %s', (_what, more, expected) => {
    expect(onlyPack(side({ packs: [network, webWith(more)] }))).toMatchObject(expected)
  })

  it('says that a pack whose objects are equal is not applied, and restarts nothing', () => {
    const after = side({ packs: [network, { ...web, version: '1.1.0' }] })
    expect(onlyPack(after)).toMatchObject({ fields: ['version'], isApplied: false })
    expect(diffClusters(side(), after).effects).toEqual([])
  })

  it('of a pack that an earlier version prepared, which has no sums, says only whether the content differs', () => {
    const strip = (pack: DesiredPack): DesiredPack => ({
      ...pack,
      manifests: pack.manifests.map(({ name, namespace, file }) => ({ name, namespace, file })),
      charts: pack.charts.map(({ name, version, release, namespace, file, valuesFile }) => ({
        ...{ name, version, release, namespace, file, valuesFile },
      })),
    })
    const before = side({ packs: [network, strip(web)] })
    expect(diffClusters(before, side()).isEmpty).toBe(true)
    expect(onlyPack(side({ packs: [network, webWith({})] }), before).fields).toEqual(['content'])
  })

  it('has added packs in their order, removed ones last and in reverse, and packs of which nothing is installed', () => {
    const before = side(
      { packs: [network, wantedPack('old-1', 1), wantedPack('old-2', 2)] },
      { profiles: [profile([shownPack('system'), shownPack('network')])] },
    )
    const after = side(
      { packs: [network, web] },
      { profiles: [profile([shownPack('system', '2.0.0'), shownPack('network'), shownPack('web')])] },
    )
    const { packs, effects } = diffClusters(before, after)
    expect(packs.map(({ name, change, isApplied }) => [name, change, isApplied])).toEqual([
      ['web', 'added', true],
      ['system', 'changed', false],
      ['old-2', 'removed', true],
      ['old-1', 'removed', true],
    ])
    expect(effects.map(({ message }) => message)).toEqual([
      'old-2 is removed, with its releases and objects',
      'old-1 is removed, with its releases and objects',
      'web is installed',
    ])
  })

  it('finds values that a profile changes and that change nothing that is installed', () => {
    const profiles = [
      profile([shownPack('system'), shownPack('network'), shownPack('web', '1.0.0', 'a: 1\n')]),
    ]
    expect(onlyPack(side({}, { profiles }))).toMatchObject({ fields: ['values'], isApplied: false })
  })

  it('says that the pods of a pack are drained, where its values say so and something of it is applied', () => {
    const drain = { podSelector: '', isEvictionDisabled: false }
    const drained = webWith({ drain, manifests: [] })
    const { packs, effects } = diffClusters(side(), side({ packs: [network, drained] }))
    expect(packs).toMatchObject([{ id: 'p1/web', isDrained: true }])
    expect(effects[0]?.restarts).toEqual(['all pods of it, which are drained first'])
    expect(onlyPack(side({ packs: [network, { ...web, drain, version: '2' }] }))).toMatchObject({
      ...{ isApplied: false, isDrained: false },
    })
  })

  it('shows values of variables, and of sensitive ones only that they changed', () => {
    const variables = [
      { name: 'place', defaultValue: 'here' },
      { name: 'password', isSensitive: true },
      { name: 'kept', defaultValue: 'x' },
      { name: 'choice', options: [{ value: 'a' }, { value: 'b', default: true }] },
    ] as ClusterProfileDetail['variables']
    const profiles = [profile([], variables)]
    const before = side({}, { profiles, given: [{ name: 'password', value: 'first-secret' }] })
    const after = side(
      {},
      {
        profiles: [profile([], [...variables, { name: 'new', isSensitive: true, defaultValue: '********' }])],
        given: [
          { name: 'place', profileUid: 'p1', value: 'there' },
          { name: 'password', value: 'second-secret' },
          { name: 'choice', value: 'a' },
        ],
      },
    )
    const found = diffClusters(before, after)
    expect(found.variables).toEqual([
      {
        ...{ profileUid: 'p1', name: 'place', isSensitive: false, change: 'changed' },
        ...{ from: 'here', to: 'there' },
      },
      { profileUid: 'p1', name: 'password', isSensitive: true, change: 'changed' },
      { profileUid: 'p1', name: 'choice', isSensitive: false, change: 'changed', from: 'b', to: 'a' },
      { profileUid: 'p1', name: 'new', isSensitive: true, change: 'added' },
    ])
    expect(JSON.stringify(found)).not.toContain('secret')
    expect(diffClusters(after, before).variables.at(-1)).toEqual({
      ...{ profileUid: 'p1', name: 'new', isSensitive: true, change: 'removed' },
    })
  })

  it('masks a variable that only one of both definitions calls sensitive', () => {
    const before = side(
      {},
      {
        profiles: [profile([], [{ name: 'key', isSensitive: true }])],
        given: [{ name: 'key', value: 'old-secret' }],
      },
    )
    const after = side(
      {},
      { profiles: [profile([], [{ name: 'key' }])], given: [{ name: 'key', value: 'plain' }] },
    )
    expect(diffClusters(before, after).variables).toEqual([
      { profileUid: 'p1', name: 'key', isSensitive: true, change: 'changed' },
    ])
  })

  it.each([
    ['1.34.4', 'a: 1\n', ['API server', 'controller manager', 'scheduler', 'kubelet']],
    [
      '1.35.0',
      '',
      ['etcd', 'API server', 'controller manager', 'scheduler', 'kubelet', 'kube-proxy', 'CoreDNS'],
    ],
  ])('of Kubernetes to %s with the configuration %j says what restarts', (version, config, restarts) => {
    const kubernetes = { ...wantedCluster().kubernetes, version, config }
    const found = diffClusters(side(), side({ kubernetes }))
    expect(found.kubernetes).toEqual({
      ...{ from: '1.34.4', to: version, configurationChanged: config !== '' },
    })
    expect(found.effects).toEqual([
      expect.objectContaining({ target: 'kubernetes', restarts, message: expect.stringContaining('run') }),
    ])
    expect(found.isEmpty).toBe(false)
  })

  it('has what the host and its node get', () => {
    const settings = { ntpServers: ['192.0.2.1'], sshKeys: [] }
    const { node } = wantedCluster()
    const found = diffClusters(
      side({ settings: { ntpServers: [], sshKeys: ['ssh-ed25519 AAAA a'] } }),
      side({
        settings,
        node: { ...node, labels: { zone: 'a' }, taints: [{ key: 'k', value: '', effect: 'NoSchedule' }] },
      }),
    )
    expect(found).toMatchObject({
      node: { fields: ['labels', 'taints'] },
      settings: {
        ntpServers: { from: [], to: ['192.0.2.1'] },
        sshKeys: { from: ['ssh-ed25519 AAAA a'], to: [] },
      },
    })
    expect(found.effects.map(({ target, restarts, message }) => [target, restarts, message])).toEqual([
      ['node', [], 'the node gets other labels, taints'],
      ['host', ['time service of the host'], 'the host takes its time from 192.0.2.1'],
      ['host', [], "the keys file of the host's account gets no keys"],
    ])
  })

  it('names the definition where its archive is another one', () => {
    const found = diffClusters(
      side(),
      side({}, { definition: { name: 'shop', version: '1.1.0', sha256: 'bb' } }),
    )
    expect(found).toMatchObject({ isEmpty: false, definition: { from: 'shop 1.0.0', to: 'shop 1.1.0' } })
  })
})
