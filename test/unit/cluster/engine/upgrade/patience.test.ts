import { expect, it } from 'vitest'
import { untilChecksPass, type CheckedRun } from '../../../../../src/cluster/engine/upgrade/check.ts'

const passed: CheckedRun = { failed: undefined, mayPass: false }
const early: CheckedRun = { failed: 'the node is not ready', mayPass: true }
const wrong: CheckedRun = { failed: 'no such image', mayPass: false }

/** @param runs what each run comes to; the last one from then on */
async function ended(longestMs: number, ...runs: readonly CheckedRun[]) {
  let count = 0
  const again: (string | undefined)[] = []
  const last = await untilChecksPass(
    async () => runs[Math.min(count++, runs.length - 1)]!,
    ({ failed }) => void again.push(failed),
    { longestMs, pauseMs: 1 },
  )
  return { last, count, again }
}

it('kubeadm is run again while only its checks fail', async () => {
  expect(await ended(60_000, early, early, passed)).toEqual({
    ...{ last: passed, count: 3, again: [early.failed, early.failed] },
  })
})

it('what is not a check that may pass is the end at once', async () => {
  expect(await ended(60_000, early, wrong)).toMatchObject({ last: wrong, count: 2 })
})

it('checks that fail for too long are the end', async () => {
  expect(await ended(-1, early)).toEqual({ last: early, count: 1, again: [] })
})
