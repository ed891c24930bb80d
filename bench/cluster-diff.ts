import { diffClusters, type DiffSide } from '../src/cluster/desired/diff.ts'
import type { DesiredPack } from '../src/cluster/desired/desired-state.ts'
import type { ClusterProfileDetail } from '../src/definition/schemas.ts'
import { wantedCluster, wantedPack } from '../test/support/cluster-parts.ts'
import type { Measure } from './figure.ts'
import { spread } from './numbers.ts'

const packCount = 200

/** The diff of two revisions of a cluster with 200 packs, every one of which differs, with values of 64 KiB and two variables each. */
export const measureClusterDiff: Measure = ({ isQuick }) => {
  const rounds = isQuick ? 20 : 200
  // As they are read from the disk: each string of its own, and flat.
  const [before, after] = [sideOf('1'), sideOf('2')].map(
    (side) => JSON.parse(JSON.stringify(side)) as DiffSide,
  ) as [DiffSide, DiffSide]
  const times = Array.from({ length: rounds }, () => {
    const startedAt = performance.now()
    const { packs, variables } = diffClusters(before, after)
    const tookMs = performance.now() - startedAt
    if (packs.length !== packCount || variables.length !== 2 * packCount)
      throw new Error('the diff is not whole')
    return tookMs
  })
  return Promise.resolve([
    {
      name: `diff of a cluster with ${packCount} packs`,
      ...{ value: spread(times), unit: 'ms', target: '≤ 50 ms' },
      note: `all of them changed, ${rounds} times`,
    },
  ])
}

function sideOf(mark: string): DiffSide {
  const packs = Array.from({ length: packCount }, (_each, index) => packOf(index, mark))
  return {
    desired: wantedCluster({ packs }),
    definition: { name: 'shop', version: mark, sha256: mark },
    profiles: [profileOf(packs, mark)],
    given: packs.map(({ name }) => ({ name: `${name}-given`, value: mark })),
  }
}

function packOf(index: number, mark: string): DesiredPack {
  const name = `pack-${index}`
  const pack = wantedPack(name, Math.floor(index / 5))
  return {
    ...{ ...pack, version: mark, digest: `${pack.digest} ${mark}` },
    namespaces: [{ name, labels: { pack: name, mark }, annotations: {} }],
    charts: ['a', 'b'].map((each) => ({
      ...{ name: each, version: '1.0.0', release: `${name}-${each}`, namespace: name, file: each, sum: each },
      ...{ valuesFile: each, valuesSum: mark },
    })),
    manifests: ['a', 'b', 'c'].map((each) => ({ name: each, namespace: name, file: each, sum: mark })),
  }
}

const profileOf = (packs: readonly DesiredPack[], mark: string): ClusterProfileDetail => ({
  ...{ profileUid: 'p1', profileName: 'shop', profileVersion: mark, profileType: 'cluster' },
  ...{ profileDescription: '', profileTags: '' },
  packs: packs.map(({ name, version }) => ({
    ...{ name, version, layer: 'addon', values: `${'x'.repeat(65_536)}${mark}`, logo: '', images: [] },
  })),
  variables: packs.flatMap(({ name }) => [
    { name: `${name}-given`, displayName: name },
    { name: `${name}-default`, defaultValue: mark },
  ]),
})
