import { describe, expect, it } from 'vitest'
import { diffClusters, maskDiff, type DiffSide } from '../../../../src/cluster/desired/diff.ts'
import type { DesiredPack } from '../../../../src/cluster/desired/desired-state.ts'
import type { ClusterProfileDetail } from '../../../../src/definition/schemas.ts'
import { createHideOf } from '../../../../src/definition/slots/secrets.ts'
import { wantedCluster, wantedPack } from '../../../support/cluster-parts.ts'

const [old, present] = ['herring-4711', 'swordfish-0907']
const hide = createHideOf([old, present])

const profiles: readonly ClusterProfileDetail[] = [
  {
    ...{ profileUid: 'p1', profileName: 'shop', profileVersion: '1.0.0', profileType: 'cluster' },
    ...{ profileDescription: '', profileTags: '', packs: [] },
    variables: [
      { name: 'password', isSensitive: true },
      { name: 'greeting' },
    ] as ClusterProfileDetail['variables'],
  },
]

const side = (packs: readonly DesiredPack[], more: Partial<DiffSide> = {}): DiffSide => ({
  desired: wantedCluster({ packs: [...packs] }),
  definition: { name: 'shop', version: '1.0.0', sha256: 'aa' },
  ...{ profiles, given: [], ...more },
})

/** A pack with a secret in each place that comes from a definition. */
const packOf = (secret: string, more: Partial<DesiredPack> = {}): DesiredPack => ({
  ...wantedPack('web'),
  digest: `digest of ${secret}`,
  namespaces: [{ name: `space-${secret}`, labels: { [`key-${secret}`]: secret }, annotations: {} }],
  manifests: [{ name: `page-${secret}`, namespace: `space-${secret}`, file: 'page.jsonl', sum: secret }],
  charts: [
    {
      ...{ name: `chart-${secret}`, version: `1.0.0-${secret}`, release: `release-${secret}` },
      ...{ namespace: `space-${secret}`, file: 'web.tgz', sum: secret },
      ...{ valuesFile: `values-${secret}.yaml`, valuesSum: secret },
    },
  ],
  images: [`registry.example/web:${secret}`],
  ...more,
})

const places: readonly (readonly [string, (secret: string) => DiffSide])[] = [
  ['names of namespaces, manifests, charts and releases', (secret) => side([packOf(secret)])],
  [
    'the name, the version and the display name of a pack',
    (secret) =>
      side([
        packOf(secret, { id: `p1/${secret}`, name: secret, displayName: `a ${secret}`, version: secret }),
      ]),
  ],
  [
    'a tag of an image',
    (secret) => side([{ ...wantedPack('web'), digest: secret, images: [`web:${secret}`] }]),
  ],
  [
    'labels of a namespace, keys and values',
    (secret) =>
      side([
        {
          ...wantedPack('web'),
          digest: secret,
          namespaces: [{ name: 'shop', labels: { [secret]: secret }, annotations: { [secret]: secret } }],
        },
      ]),
  ],
  [
    'the value of a variable, sensitive or not',
    (secret) =>
      side([], {
        given: [
          { name: 'password', value: secret },
          { name: 'greeting', value: `hello ${secret}` },
        ],
      }),
  ],
  [
    'the name and uid of a variable',
    (secret) =>
      side([], {
        profiles: [
          {
            ...profiles[0]!,
            profileUid: `uid-${secret}`,
            variables: [{ name: secret, defaultValue: secret }] as ClusterProfileDetail['variables'],
          },
        ],
      }),
  ],
  [
    'the definition',
    (secret) => side([], { definition: { name: `shop-${secret}`, version: secret, sha256: secret } }),
  ],
  [
    'Kubernetes, the node and the settings of the host',
    (secret) =>
      side([], {
        desired: wantedCluster({
          kubernetes: { pack: 'edge-k8s', version: `1.34.4-${secret}`, config: secret, stages: [] },
          node: { ...wantedCluster().node, name: secret, labels: { [secret]: secret } },
          settings: { ntpServers: [`${secret}.example`], sshKeys: [`ssh-ed25519 AAAA ${secret}`] },
        }),
      }),
  ],
]

describe('a diff for the API', () => {
  it.each(places)('shows no secret of either revision in %s', (_place, sideOf) => {
    const diff = diffClusters(sideOf(old), sideOf(present))
    expect(diff.isEmpty).toBe(false)
    const shown = JSON.stringify(maskDiff(diff, hide))
    expect(shown).not.toMatch(new RegExp(`${old}|${present}`))
  })

  it('has its secrets where the test looks for them, or it would show nothing', () => {
    const shown = JSON.stringify(places.map(([, sideOf]) => diffClusters(sideOf(old), sideOf(present))))
    for (const secret of [old, present]) {
      for (const place of [`space-${secret}`, `page-${secret}`, `chart-${secret}`, `release-${secret}`])
        expect(shown).toContain(`"${place}"`)
      for (const place of [
        `uid-${secret}`,
        `hello ${secret}`,
        `shop-${secret} ${secret}`,
        `1.34.4-${secret}`,
      ])
        expect(shown).toContain(`"${place}"`)
      expect(shown).toContain(`${secret}.example`)
    }
  })

  it('keeps the words of the API, even where a secret is one of them', () => {
    const diff = diffClusters(
      side([packOf(old)]),
      side([packOf(present)], { desired: wantedCluster({ packs: [packOf(present)] }) }),
    )
    const words = createHideOf(['changed', 'added', 'removed', 'manifests', 'charts', 'pack'])
    const shown = maskDiff(diff, words)
    expect(shown.packs.map(({ change, fields }) => [change, fields])).toEqual(
      diff.packs.map(({ change, fields }) => [change, fields]),
    )
    expect(shown.effects.map(({ target }) => target)).toEqual(['pack'])
    expect(shown.isEmpty).toBe(false)
  })

  it('stays as it is where nothing is secret', () => {
    const diff = diffClusters(side([packOf(old)]), side([packOf(present)]))
    expect(maskDiff(diff, createHideOf([]))).toEqual(diff)
  })
})
