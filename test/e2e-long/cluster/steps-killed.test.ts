import { describe, expect, it } from 'vitest'
import { runNameOf } from '../../../src/cluster/loop/step-runner.ts'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { killSteps, type Victim } from './step-kills.ts'

const plant = bootForTests()

const unitOf = (key: string) => `edgehostd-step-${runNameOf(key)}.service`
const made = ['record-host', 'start-containerd', 'pull-images', 'kubeadm-init', 'kubeadm-clear'].map(unitOf)
const removed = ['remove-kubernetes', 'drop-address', 'restore-host'].map(unitOf)

/** Kills the steps of some work. @returns how often each was killed, by the name of its unit */
async function during(victim: Victim, work: () => Promise<unknown>) {
  const stop = new AbortController()
  const killing = killSteps(plant.host, { victim, seed: 919 }, stop.signal)
  await work().finally(() => stop.abort())
  return killing
}

describe.skipIf(isKitMissing())('steps that are killed', { timeout: 1_200_000 }, () => {
  it.each([
    // Nothing says how such a run ended: the host is looked at, and the step is planned anew. Killed before it has begun, it is a failure.
    { victim: 'keeper', isCutOff: true, failure: /did not begin/ },
    // The keeper says that its program was killed: a failure, and the next try comes later.
    { victim: 'program', isCutOff: false, failure: /was ended by SIGKILL/ },
  ] as const)(
    'the $victim of each step is killed twice: the cluster runs, and after its deletion the host is as before',
    async ({ victim, isCutOff, failure }) => {
      await plant.cluster.create({ name: `killed-${victim}` })
      const kills = await during(victim, () => plant.cluster.reach('Running', { timeoutMs: 600_000 }))
      expect([...kills.keys()]).toEqual(expect.arrayContaining(made))
      expect([...kills.keys()].join(' ')).toContain('web')
      expect(kills.get(unitOf('kubeadm-init'))).toBe(2)
      const events = await plant.cluster.ownEvents()
      const reasons = events.map(({ reason }) => reason)
      expect(reasons).toContain('BootstrapReset')
      expect(reasons.includes('StepCutOff')).toBe(isCutOff)
      const failures = events.filter(({ reason }) => reason === 'StepFailed').map(({ message }) => message)
      expect(failures.filter((message) => !failure.test(message))).toEqual([])
      expect(isCutOff || failures.length > 0).toBe(true)
      await expectWorks(plant, plant.cluster)
      await plant.cluster.expectHealthy(60_000)

      const killsOfDeletion = await during(victim, () => plant.cluster.remove(300_000))
      expect([...killsOfDeletion.keys()].sort()).toEqual([...removed].sort())
      await plant.expectRestored()
    },
  )
})
