import { describe, expect, it } from 'vitest'
import { createKubeadmEngine, type KubeadmEngineOptions } from '../../../../src/cluster/engine/kubeadm.ts'
import type { EngineObserved } from '../../../../src/cluster/loop/observed.ts'
import type { Step } from '../../../../src/cluster/loop/step.ts'
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

it('a kubelet that follows the name of the host gets that of its node before it is started', () => {
  expect(all({ followsHostName: 'line-9', kubelet: 'stopped', api: 'silent' })[1]).toEqual([
    ...['fix-node-name', 'start-units', 'wait-for-api'],
  ])
  expect(all({})[1]).toEqual([])
})

describe('a renewal of certificates', () => {
  const renewal = (more: Partial<EngineObserved>, isAskedFor = false) => {
    const observed = { ...runningHost(wanted).engine, ...more }
    return engine.renew(wanted, observed, isAskedFor).map(({ key, isAside }) => [key, isAside === true])
  }

  it('is done when it is due or asked for, and a failed try of it holds up nothing', () => {
    expect(renewal({})).toEqual([])
    expect(renewal({ isRenewalDue: true })).toEqual([['certificates-renew', true]])
    expect(renewal({}, true)).toEqual([['certificates-renew', true]])
  })

  it('that is overdue comes before everything that needs the API server: neither that nor the kubelet may start before', () => {
    const overdue = { isRenewalDue: true, isRenewalOverdue: true, api: 'silent', kubelet: 'stopped' } as const
    expect(renewal(overdue)).toEqual([['certificates-renew', false]])
    expect(all(overdue)).toEqual([[], [], []])
    expect(all({ ...overdue, isRenewalOverdue: false })[1]).toEqual(['start-units', 'wait-for-api'])
  })

  it('waits for a control plane, and until that is as it is wanted', () => {
    expect(renewal({ controlPlane: 'absent', isRenewalDue: true }, true)).toEqual([])
    expect(renewal({ isConfigured: false, isRenewalDue: true }, true)).toEqual([])
    expect(renewal({ version: '1.33.13' }, true)).toEqual([])
  })
})
