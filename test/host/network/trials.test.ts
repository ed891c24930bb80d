import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { ChangeSet } from '../../../src/network/change-set.ts'
import { attentionOf } from '../../../src/network/trial/room.ts'
import { openChangeStore } from '../../../src/network/trial/store.ts'
import { createTrials, type Trials } from '../../../src/network/trial/trials.ts'
import type { Way } from '../../../src/network/trial/way.ts'
import { migrations } from '../../../src/edgehostd/migrations.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { playNetworkTrial } from '../../support/played-network-trial.ts'
import { captureLog } from '../../support/https-server.ts'
import { eventually } from '../../e2e/host/eventually.ts'

const expected = [{ link: 'eth1', addresses: ['192.0.2.9/24'], gateway: '192.0.2.1' }]
const change: ChangeSet = {
  backend: 'networkd',
  links: ['eth1'],
  before: { files: [], devices: [], up: [], expected },
  after: { files: [], devices: [], up: [], expected },
  kept: [],
  summary: 'eth1: address 192.0.2.9/24',
}
const request = {
  windowSeconds: 60,
  requestedBy: 'alice',
  cameBy: { isLocal: false, hostAddress: '192.0.2.5', clientAddress: '192.0.2.77' },
  refuseBusy: () => undefined,
  changesWayOut: true,
  plannedAfter: undefined,
}

function start() {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-trials-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const folders = { runtime: join(folder, 'run'), state: join(folder, 'state') }
  mkdirSync(folders.runtime)
  const { log, lines } = captureLog()
  const database = openDatabase(join(folder, 'db'), log, migrations)
  onTestFinished(() => database.close())
  const program = playNetworkTrial(folders)
  const records: string[] = []
  const ended: string[] = []
  const world = { works: { names: false, platform: false }, aheadMs: 0 }
  const create = (): Trials => {
    const trials = createTrials({
      store: openChangeStore(database),
      run: (...args) =>
        program.runner.run(
          '',
          args.filter((each) => each !== undefined),
          { timeoutMs: 1_000 },
        ),
      worksNow: async () => world.works,
      folders,
      links: () => [{ link: 'eth1', addresses: ['192.0.2.5/24', '192.0.2.9/24'] }],
      record: ({ message }) => records.push(message),
      clock: { now: () => Date.now() + world.aheadMs, monotonic: () => performance.now() },
      log,
    })
    trials.onEnd(({ state }) => ended.push(state))
    onTestFinished(() => trials.stop())
    return trials
  }
  return { trials: create(), create, program, folders, records, ended, lines, world }
}

/** A connection that is accepted now. */
const newWay = (more: Partial<Way> = {}): Way => ({
  isLocal: false,
  hostAddress: '192.0.2.9',
  clientAddress: '192.0.2.77',
  acceptedAt: performance.now(),
  ...more,
})
const refused = (code: string) => expect.objectContaining({ code }) as Error

it('a change is confirmed on a connection that was accepted after its apply', async () => {
  const { trials, program, folders, records, ended } = start()
  const { uid } = await trials.start(change, request)
  expect(trials.find(uid)).toMatchObject({ state: 'applying', needsNewWay: true, requestedBy: 'alice' })
  expect(trials.open()?.uid).toBe(uid)
  await expect(trials.confirm(uid, newWay())).rejects.toThrow(refused('NetworkChangeNotApplied'))
  const early = newWay()
  program.applied()
  expect(trials.find(uid)).toMatchObject({ state: 'trial', appliedAt: expect.any(Number) as number })
  await expect(trials.confirm(uid, early)).rejects.toThrow(refused('NetworkConfirmUnproven'))
  await expect(trials.confirm(uid, newWay({ hostAddress: '192.0.2.200' }))).rejects.toThrow(
    refused('NetworkConfirmUnproven'),
  )
  expect(program.calls).toEqual(['start'])
  expect(await trials.confirm(uid, newWay())).toMatchObject({
    state: 'confirmed',
    endedAt: 1_800_000_000_000,
  })
  expect(trials.open()).toBeUndefined()
  expect([records, ended]).toEqual([['The change of the network is confirmed'], ['confirmed']])
  await expect(trials.confirm(uid, newWay())).rejects.toThrow(refused('NetworkChangeDecided'))
  await expect(trials.revert(uid)).rejects.toThrow(refused('NetworkChangeDecided'))
  expect(readdirSync(folders.state)).toEqual(['ended'])
})

it('a second change is refused with the uid of the open one', async () => {
  const { trials } = start()
  const { uid } = await trials.start(change, request)
  await expect(trials.start(change, request)).rejects.toThrow(
    expect.objectContaining({ code: 'NetworkChangeOpen', status: 429, details: { uid } }) as Error,
  )
  expect(trials.list()).toHaveLength(1)
})

it('a change that was planned before another one came is refused: its files would take that back', async () => {
  const { trials, program } = start()
  const before = trials.lastEnded()
  const { uid } = await trials.start(change, request)
  const meanwhile = trials.lastEnded()
  program.applied()
  await expect.poll(() => trials.find(uid).state).toBe('trial')
  await trials.confirm(uid, newWay({ isLocal: true }))
  for (const plannedAfter of [before, meanwhile])
    await expect(trials.start(change, { ...request, plannedAfter })).rejects.toThrow(
      expect.objectContaining({ code: 'NetworkChangeOpen', details: { uid } }) as Error,
    )
  expect(trials.lastEnded()).toBe(uid)
  await trials.start(change, { ...request, plannedAfter: trials.lastEnded() })
  expect(trials.list()).toHaveLength(2)
})

it('a change that is committed and could not be written is being confirmed, also over a boot, and not taken back', async () => {
  const { trials, create, program, folders } = start()
  const { uid } = await trials.start(change, request)
  mkdirSync(join(folders.state, 'commit'))
  writeFileSync(join(folders.state, 'commit', 'uid'), `${uid}\n`)
  program.reboot()
  expect(create().find(uid).state).toBe('confirming')
  expect(trials.find(uid).state).toBe('confirming')
})

it('a change that could not be armed leaves nothing', async () => {
  const { trials, program, folders } = start()
  program.failStart(4, 'network-trial: the revert could not be armed, so nothing was changed\n')
  await expect(trials.start(change, request)).rejects.toThrow(refused('NetworkChangeFailed'))
  expect([trials.list(), trials.open(), readdirSync(folders.state)]).toEqual([[], undefined, []])
})

it('a change that the program has taken back is so without a request', async () => {
  const { trials, program, records } = start()
  const { uid } = await trials.start(change, request)
  program.end('reverted\nfailed\n1800000000000\nthe gateway 192.0.2.1 does not answer on eth1\n')
  await eventually(() => expect(records).toHaveLength(1))
  expect(trials.find(uid)).toMatchObject({
    state: 'reverted',
    reason: 'failed',
    message: 'the gateway 192.0.2.1 does not answer on eth1',
  })
  expect(attentionOf(trials.list())).toEqual([])
})

it('a change that was asked back is reverting in the reply, and cannot be confirmed', async () => {
  const { trials, program } = start()
  const { uid } = await trials.start(change, request)
  program.applied()
  expect(await trials.revert(uid)).toMatchObject({ state: 'reverting', reason: 'asked' })
  await expect(trials.confirm(uid, newWay({ isLocal: true }))).rejects.toThrow(
    refused('NetworkChangeDecided'),
  )
})

it('a daemon that starts again finds the open change, and old connections do not confirm it', async () => {
  const { trials, create, program } = start()
  const { uid } = await trials.start(change, request)
  program.applied()
  trials.stop()
  const early = newWay()
  const next = create()
  await next.resume()
  expect(next.find(uid)).toMatchObject({ state: 'trial' })
  await expect(next.confirm(uid, early)).rejects.toThrow(refused('NetworkConfirmUnproven'))
  expect(await next.confirm(uid, newWay())).toMatchObject({ state: 'confirmed' })
})

it('a boot in a trial is the revert', async () => {
  const { trials, create, program, ended } = start()
  const { uid } = await trials.start(change, request)
  trials.stop()
  program.reboot()
  const next = create()
  await next.resume()
  expect(next.find(uid)).toMatchObject({ state: 'reverted', reason: 'reboot' })
  expect(ended).toEqual(['reverted'])
})

it('a change is refused before anything is changed where the host does something else, also what began while its files were written', async () => {
  const { trials, program, folders } = start()
  const busy = new Error('an upload')
  let asked = 0
  for (const nth of [1, 2]) {
    asked = 0
    const refuseBusy = () => {
      asked += 1
      // The second time others find the change open.
      expect(trials.open() === undefined).toBe(asked === 1)
      if (asked === nth) throw busy
    }
    await expect(trials.start(change, { ...request, refuseBusy })).rejects.toThrow(busy)
    expect(asked).toBe(nth)
    expect(trials.list()).toEqual([])
    expect(program.calls).toEqual([])
  }
  expect(readdirSync(folders.state)).toEqual([])
})

it('a change that was not begun before the daemon ended is taken back, with what was written of it', async () => {
  const { trials, create, folders } = start()
  const { uid } = await trials.start(change, request)
  trials.stop()
  rmSync(join(folders.runtime, 'trial'), { recursive: true })
  mkdirSync(join(folders.state, `new-${uid}`), { recursive: true })
  const next = create()
  await next.resume()
  expect(next.find(uid)).toMatchObject({ state: 'reverted', reason: 'failed' })
  expect(readdirSync(folders.state)).toEqual([])
})

it('a change whose start outlives the daemon is open again', async () => {
  const { trials, create, folders, program } = start()
  const { uid } = await trials.start(change, request)
  trials.stop()
  renameSync(join(folders.runtime, 'trial'), join(folders.runtime, 'later'))
  const next = create()
  await next.resume()
  expect(next.find(uid)).toMatchObject({ state: 'reverted' })
  renameSync(join(folders.runtime, 'later'), join(folders.runtime, 'trial'))
  program.applied()
  expect(next.open()).toMatchObject({ uid, state: 'trial', endedAt: undefined, reason: undefined })
  expect(await next.confirm(uid, newWay())).toMatchObject({ state: 'confirmed' })
})

it('a commit that a power cut left is finished where the unit of the boot did not', async () => {
  const { trials, create, program, folders } = start()
  const { uid } = await trials.start(change, request)
  trials.stop()
  program.reboot()
  mkdirSync(join(folders.state, 'commit'), { recursive: true })
  writeFileSync(join(folders.state, 'commit', 'uid'), `${uid}\n`)
  await create().resume()
  expect(program.calls).toEqual(['start', 'boot'])
})

it('a network that is not as before is bad health, and says what differs', async () => {
  const { trials, program, lines } = start()
  const { uid } = await trials.start(change, request)
  expect(attentionOf(trials.list())).toMatchObject([
    { code: 'NetworkChangeOpen', command: `edgehostctl network confirm ${uid}` },
  ])
  program.end('revertFailed\ndeadline\n1800000000000\nmissing: address eth1 192.0.2.5/24\n')
  expect(trials.find(uid)).toMatchObject({ state: 'revertFailed', reason: 'deadline' })
  expect(attentionOf(trials.list())).toMatchObject([
    {
      code: 'NetworkRevertFailed',
      severity: 'error',
      message: expect.stringContaining('missing: address eth1') as string,
    },
  ])
  expect(lines.some(({ msg }) => String(msg).includes('not as before'))).toBe(true)
  await trials.checkRevert()
  expect(trials.find(uid).state).toBe('revertFailed')
  // The cable that was pulled is in again.
  program.plugIn()
  await trials.checkRevert()
  expect(trials.find(uid)).toMatchObject({
    ...{ state: 'reverted', reason: 'deadline' },
    message: expect.stringMatching(/as before since .*; until then: missing: address eth1/) as string,
  })
  expect(attentionOf(trials.list())).toEqual([])
  await trials.checkRevert()
  expect(program.calls.filter((each) => each === 'check')).toHaveLength(2)
})

it('changes are listed as they came although the clock was set back by years, over a restart too', async () => {
  const { trials, create, program, world } = start()
  world.aheadMs = 10 * 365 * 86_400_000
  const { uid: first } = await trials.start(change, request)
  program.applied()
  await trials.confirm(first, newWay({ isLocal: true }))
  world.aheadMs = 0
  const { uid: second } = await trials.start(change, { ...request, plannedAfter: trials.lastEnded() })
  expect(first > second).toBe(true)
  for (const each of [trials, create()]) expect(each.list().map(({ uid }) => uid)).toEqual([second, first])
})

it('a uid that no change has is not found', () => {
  const { trials } = start()
  expect(() => trials.find('none')).toThrow(refused('NotFound'))
})
