import { describe, expect, it } from 'vitest'
import { createKubeadmEngine, type KubeadmEngineOptions } from '../../../../../src/cluster/engine/kubeadm.ts'
import type { EngineObserved, VersionChange } from '../../../../../src/cluster/loop/observed.ts'
import { runningHost, wantedCluster } from '../../../../support/cluster-parts.ts'

const base = wantedCluster({ generation: 4 })
const engine = createKubeadmEngine({
  ...{ stateDirectory: '/nowhere', settings: { programs: {} }, architecture: 'amd64' },
} as unknown as KubeadmEngineOptions)

const wantedOf = (version: string) => ({ ...base, kubernetes: { ...base.kubernetes, version } })
const stepsTo = (version: string, more: Partial<EngineObserved>) => {
  const observed = { ...runningHost(base).engine, ...more }
  const wanted = wantedOf(version)
  expect([...engine.prepare(wanted, observed), ...engine.init(wanted, observed)]).toEqual([])
  return engine.change(wanted, observed)
}
const keysTo = (version: string, more: Partial<EngineObserved>) =>
  stepsTo(version, more).map(({ key }) => key)
const change = (phase: VersionChange['phase']): VersionChange => ({
  ...{ from: '1.33.13', to: '1.34.4', generation: 3, phase },
})
const fresh = { isPrepared: false, isConfigured: false }

const preparing = ['place-next-programs', 'write-next-files', 'pull-next-images', 'kubernetes-check']
const configuring = ['place-programs', 'write-engine-files', 'start-containerd', 'pull-images', 'reconfigure']

describe('from the version that runs to a newer one', () => {
  it('everything is checked, and copied, before something is changed', () => {
    expect(keysTo('1.34.4', { ...fresh, version: '1.33.13' })).toEqual([
      ...preparing,
      ...['kubernetes-copy', 'kubernetes-upgrade', ...configuring, 'kubernetes-settle'],
    ])
  })

  it('also where the API server and the kubelet do not run', () => {
    const down = { ...fresh, version: '1.33.13', api: 'silent', kubelet: 'stopped' } as const
    expect(keysTo('1.34.4', down)).toContain('kubernetes-upgrade')
  })

  it.each([
    ['copying', ['kubernetes-copy', 'kubernetes-upgrade', ...configuring, 'kubernetes-settle']],
    ['copied', ['kubernetes-upgrade', ...configuring, 'kubernetes-settle']],
    ['upgrading', ['kubernetes-upgrade', ...configuring, 'kubernetes-settle']],
    ['upgraded', [...configuring, 'kubernetes-settle']],
  ] as const)('what was cut off while it was %s continues there', (phase, keys) => {
    expect(keysTo('1.34.4', { ...fresh, version: '1.33.13', change: change(phase) })).toEqual(keys)
  })

  it('is only waited for when it has its configuration', () => {
    expect(keysTo('1.34.4', { version: '1.33.13', change: change('upgraded') })).toEqual([
      'kubernetes-settle',
    ])
  })

  it('the copy keeps the generation with which the change was begun', () => {
    const [copy] = stepsTo('1.34.4', { version: '1.33.13', change: change('copying') })
    expect(copy?.work.order).toEqual({
      ...{ stateDirectory: '/nowhere', from: '1.33.13', to: '1.34.4', generation: 3, node: 'node-1' },
    })
    const begun = stepsTo('1.34.4', { ...fresh, version: '1.33.13' }).find(
      ({ key }) => key === 'kubernetes-copy',
    )
    expect(begun?.work.order).toMatchObject({ from: '1.33.13', to: '1.34.4', generation: 4 })
  })

  it('nothing is left when it is good', () => {
    expect(keysTo('1.34.4', { version: '1.34.4' })).toEqual([])
  })
})

describe('back', () => {
  it.each(['copying', 'copied', 'upgrading', 'upgraded', 'restoring'] as const)(
    'the version before is restored from a change that is %s',
    (phase) => {
      const steps = stepsTo('1.33.13', { ...fresh, version: '1.33.13', change: change(phase) })
      expect(steps).toMatchObject([
        { key: 'kubernetes-restore', isRestoration: true, work: { order: { version: '1.33.13' } } },
      ])
    },
  )

  it('a restoration that has begun comes to its end, whatever is wanted', () => {
    for (const version of ['1.34.4', '1.35.0', '1.33.14'])
      expect(keysTo(version, { version: '1.34.4', change: change('restoring') })).toEqual([
        'kubernetes-restore',
      ])
  })

  it('an older version is restored from its copy, when everything was good', () => {
    expect(stepsTo('1.33.13', { ...fresh, version: '1.34.4' })).toMatchObject([
      { key: 'kubernetes-restore', isRestoration: true, work: { order: { version: '1.33.13' } } },
    ])
  })
})
