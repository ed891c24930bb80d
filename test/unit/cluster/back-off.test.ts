import { expect, it } from 'vitest'
import { backOffMs, leftOfWaitMs } from '../../../src/cluster/loop/step-work.ts'
import { runNameOf } from '../../../src/cluster/loop/step-runner.ts'

it.each([
  [1, 10_000],
  [2, 20_000],
  [4, 80_000],
  [7, 600_000],
  [2_000, 600_000],
])('after %d failures a step waits %d ms, a fifth more or less', (failures, middle) => {
  expect(backOffMs(failures, 0)).toBe(middle * 0.8)
  expect(backOffMs(failures, 0.5)).toBe(middle)
  expect(backOffMs(failures, 1)).toBe(middle * 1.2)
})

it.each([
  ['at once', 1_000, 20_000],
  ['in its middle', 8_000, 13_000],
  ['after it', 90_000, 0],
  ['with a clock that was set back', -3_600_000, 20_000],
])('what is left of a wait %s is between nothing and the whole', (_when, now, left) => {
  expect(leftOfWaitMs(1_000, 20_000, now)).toBe(left)
})

it('the run of a step has a name that systemd takes, the same for the same key, and another for another', () => {
  expect(runNameOf('kubeadm-init')).toMatch(/^kubeadm-init-[0-9a-f]{8}$/)
  expect(runNameOf('pack p1/web manifests')).toMatch(/^pack-p1-web-manifests-[0-9a-f]{8}$/)
  expect(runNameOf('pack p1/web')).not.toBe(runNameOf('pack p1 web'))
  expect(runNameOf('ü'.repeat(300))).toMatch(/^[0-9a-f]{8}$/)
  expect(runNameOf('a'.repeat(300))).toHaveLength(49)
})
