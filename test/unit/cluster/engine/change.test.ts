import { expect, it } from 'vitest'
import { createKubeadmEngine, type KubeadmEngineOptions } from '../../../../src/cluster/engine/kubeadm.ts'
import type { EngineObserved } from '../../../../src/cluster/observed.ts'
import type { Step } from '../../../../src/cluster/step.ts'
import { runningHost, wantedCluster } from '../../../support/cluster-parts.ts'

const wanted = wantedCluster()
const engine = createKubeadmEngine({
  ...{ stateDirectory: '/nowhere', settings: { programs: {} }, architecture: 'amd64' },
} as unknown as KubeadmEngineOptions)
const keys = (steps: readonly Step[]) => steps.map(({ key }) => key)
const all = (more: Partial<EngineObserved>) => {
  const observed = { ...runningHost(wanted).engine, ...more }
  const { prepare, init, change } = engine
  return [prepare, init, change].map((each) => keys(each(wanted, observed)))
}

it('has nothing to do for a control plane as it is wanted', () => {
  expect(all({})).toEqual([[], [], []])
})

it('applies another configuration to a control plane that runs', () => {
  expect(all({ isPrepared: false, isConfigured: false })).toEqual([
    [],
    [],
    ['place-programs', 'write-engine-files', 'start-containerd', 'pull-images', 'reconfigure'],
  ])
})

it('applies a configuration also where the API server and the kubelet do not run: it may be the one that is taken back', () => {
  const [prepare, init, change] = all({ api: 'silent', kubelet: 'stopped', isConfigured: false })
  expect([prepare, init]).toEqual([[], []])
  expect(change).toContain('reconfigure')
})

it('prepares nothing in the place of a control plane of another version', () => {
  const [prepare, init] = all({ version: '1.33.13', isPrepared: false, containerd: 'stopped' })
  expect([prepare, init]).toEqual([[], []])
})
