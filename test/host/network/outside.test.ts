import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { migrations } from '../../../src/edgehostd/migrations.ts'
import type { ChangeSet } from '../../../src/network/change-set.ts'
import { watchOutside, worksNow } from '../../../src/network/trial/outside.ts'
import { openChangeStore } from '../../../src/network/trial/store.ts'
import { createTrials, type TrialRequest } from '../../../src/network/trial/trials.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { captureLog } from '../../support/https-server.ts'
import { playNetworkTrial } from '../../support/played-network-trial.ts'

const expected = [{ link: 'eth1', addresses: ['192.0.2.9/24'], gateway: '192.0.2.1' }]
const state = { files: [], devices: [], up: [], expected }
const change: ChangeSet = {
  ...{ backend: 'networkd', links: ['eth1'], kept: [], summary: 'eth1: address 192.0.2.9/24' },
  ...{ before: state, after: state },
}

/** A host on a clock that only a pause of the watch turns. */
function start(before: { names?: boolean; platform?: boolean } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-outside-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const folders = { runtime: join(folder, 'run'), state: join(folder, 'state') }
  mkdirSync(folders.runtime)
  const { log } = captureLog()
  const database = openDatabase(join(folder, 'db'), log, migrations)
  onTestFinished(() => database.close())
  const program = playNetworkTrial(folders)
  const world = {
    names: before.names ?? false,
    platform: before.platform ?? false,
    now: 0,
    reconnects: 0,
    pauses: 0,
    /** Number of pauses after which name servers answer. */
    answersFrom: Infinity,
  }
  let beat: (connectedSince: number) => void = () => undefined
  const outside = {
    answersNames: async () => world.names || world.pauses >= world.answersFrom,
    platform: {
      isConnected: () => world.platform,
      reconnect: () => void (world.reconnects += 1),
      onBeat: (listener: (connectedSince: number) => void) => void (beat = listener),
    },
  }
  const clock = { now: () => world.now, monotonic: () => world.now }
  const trials = createTrials({
    ...{ store: openChangeStore(database), folders, clock, log },
    run: (action, argument, why = '') =>
      program.runner.run('', [action, argument, why], { timeoutMs: 1_000 }),
    worksNow: () => worksNow(outside),
    links: () => [{ link: 'eth1', addresses: ['192.0.2.9/24'] }],
    record: () => undefined,
  })
  onTestFinished(() => trials.stop())
  watchOutside({
    ...{ trials, outside, clock, log },
    async pause(ms) {
      world.now += ms
      world.pauses += 1
      await new Promise(setImmediate)
    },
  })
  return {
    ...{ trials, program, world, beat: (since: number) => beat(since) },
    /** Begins a change, and has it applied at the time 1000. */
    async apply(more: Partial<TrialRequest> = {}, works: { names?: boolean } = {}) {
      const { uid } = await trials.start(change, {
        ...{
          windowSeconds: 60,
          requestedBy: 'alice',
          changesWayOut: true,
          plannedAfter: trials.lastEnded(),
          refuseBusy: () => undefined,
        },
        cameBy: { isLocal: false, hostAddress: '192.0.2.9', clientAddress: '192.0.2.77' },
        ...more,
      })
      world.now = 1_000
      Object.assign(world, works)
      program.applied()
      trials.list()
      return uid
    },
  }
}
const way = (isLocal: boolean) => ({
  ...{ isLocal, hostAddress: '192.0.2.9', clientAddress: '192.0.2.77', acceptedAt: 1_001 },
})

it('name servers that answered before the change and do not answer after it end the trial within 20 seconds', async () => {
  const { apply, trials, program, world } = start({ names: true })
  const uid = await apply({}, { names: false })
  await expect
    .poll(() => program.failures)
    .toEqual(['the name servers answered before the change, and not after it'])
  expect(trials.find(uid)).toMatchObject({ state: 'reverting', reason: 'failed' })
  expect(world.now).toBe(21_000)
  expect(world.reconnects).toBe(1)
})

it('name servers that did not answer before are not waited for, nor those that answer after a while', async () => {
  const none = start()
  await none.apply()
  await expect.poll(() => none.world.reconnects).toBe(1)
  expect([none.world.pauses, none.program.failures]).toEqual([0, []])

  const slow = start({ names: true })
  slow.world.answersFrom = 3
  const uid = await slow.apply({}, { names: false })
  await expect.poll(() => slow.world.pauses).toBe(3)
  await new Promise(setImmediate)
  expect([slow.world.pauses, slow.program.failures]).toEqual([3, []])
  expect(slow.trials.find(uid).state).toBe('trial')
})

it('a platform that answered before, and is not heard on a new connection, ends the trial', async () => {
  const { apply, beat, program } = start({ platform: true })
  await apply()
  // Of a connection that survived the change.
  beat(999)
  await expect
    .poll(() => program.failures)
    .toEqual(['the platform answered before the change, and not after it'])
})

it('where gateway or name servers change the platform has to be heard before a request confirms; root may at once', async () => {
  const { apply, beat, trials, program, world } = start({ platform: true })
  const uid = await apply()
  expect(trials.find(uid)).toMatchObject({ needsPlatform: true })
  await expect(trials.confirm(uid, way(false))).rejects.toMatchObject({ code: 'NetworkPlatformUnheard' })
  beat(1_000)
  expect(await trials.confirm(uid, way(false))).toMatchObject({ state: 'confirmed' })
  expect(program.failures).toEqual([])
  world.now = 2_000

  const second = await apply()
  await expect(trials.confirm(second, way(false))).rejects.toMatchObject({ code: 'NetworkPlatformUnheard' })
  expect(await trials.confirm(second, way(true))).toMatchObject({ state: 'confirmed' })
})

it('a change of neither is confirmed without the platform, and one on a host without a platform too', async () => {
  const { apply, trials } = start({ platform: true })
  expect(await trials.confirm(await apply({ changesWayOut: false }), way(false))).toMatchObject({
    ...{ state: 'confirmed', needsPlatform: false },
  })
  const alone = start()
  expect(await alone.trials.confirm(await alone.apply(), way(false))).toMatchObject({ state: 'confirmed' })
})

it('with confirm=platform the first heartbeat on a connection of after the apply confirms, and no other', async () => {
  const { apply, beat, trials, program } = start({ platform: true })
  const uid = await apply({ confirmBy: 'platform' })
  beat(999)
  await new Promise(setImmediate)
  expect(trials.find(uid).state).toBe('trial')
  expect(program.calls).not.toContain('confirm')
  beat(1_000)
  await expect.poll(() => trials.find(uid).state).toBe('confirmed')
  beat(1_500)
  expect(program.calls.filter((each) => each === 'confirm')).toHaveLength(1)
})

it('a heartbeat before the apply has ended confirms nothing', async () => {
  const { beat, trials, program } = start({ platform: true })
  await trials.start(change, {
    ...{
      windowSeconds: 60,
      requestedBy: 'alice',
      changesWayOut: true,
      plannedAfter: undefined,
      refuseBusy: () => undefined,
    },
    ...{ cameBy: way(false), confirmBy: 'platform' },
  })
  beat(5_000)
  await new Promise(setImmediate)
  expect(program.calls).toEqual(['start'])
})
