import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { createHold, createLoopWorld } from '../../support/cluster-loop.ts'
import { wantedPack } from '../../support/cluster-parts.ts'
import { createRunningClock } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

const soon = { timeout: 20_000, interval: 20 }
type World = Awaited<ReturnType<typeof createLoopWorld>>
type Life = ReturnType<World['live']>

const phaseBecomes = (life: Life, phase: string) =>
  waitFor(() => expect(life.loop.status()?.phase).toBe(phase), soon)
const isGone = (life: Life) => waitFor(() => expect(life.store.current()).toBeUndefined(), soon)

/** A world with a cluster that is Running, and the life of the daemon in which it came. */
async function runningCluster() {
  const world = await createLoopWorld()
  const life = world.live()
  life.accept()
  life.loop.start()
  await phaseBecomes(life, 'Running')
  return { world, life }
}

it('a cluster is made step by step, is Running, and is deleted again until nothing is left', async () => {
  const world = await createLoopWorld([wantedPack('cni', 0), wantedPack('web', 1)])
  const life = world.live()
  life.accept()
  expect(life.loop.status()).toMatchObject({ state: 'Provisioning', phase: 'Pending' })
  life.loop.start()
  await phaseBecomes(life, 'Running')
  expect(life.loop.status()).toMatchObject({ state: 'Running', health: { status: 'Healthy' } })
  await waitFor(() => expect(life.steps.list().every(({ state }) => state === 'done')).toBe(true), soon)
  expect(life.steps.list().map(({ key }) => key)).toEqual([
    ...['record', 'prepare', 'init', 'p1/cni apply', 'p1/cni wait', 'p1/web apply', 'p1/web wait'],
  ])
  expect(life.reasons()).toEqual(
    expect.arrayContaining(['HostRecorded', 'ControlPlaneStarted', 'NodeReady', 'PacksAvailable', 'Running']),
  )

  life.delete()
  expect(life.loop.status()).toMatchObject({ state: 'Deleting', phase: 'Deleting' })
  await isGone(life)
  await waitFor(() => expect(world.has('removed')).toBe(true), soon)
  expect(life.reasons().at(-1)).toBe('Deleted')
  expect(life.released).toEqual(['edge-1'])
  expect(life.steps.list()).toEqual([])
  expect(world.has('is-init') || world.has('is-record')).toBe(false)
  expect(life.loop.status()).toBeUndefined()
})

it('a step that runs while the daemon is away is found again, begun once, and its lines are told once', async () => {
  const world = await createLoopWorld(undefined, { asProcesses: true })
  world.put('hold-init')
  world.put('lines-init', '[certs] making\nnoise\n[etcd] writing\n')
  const first = world.live()
  first.accept()
  first.loop.start()
  await waitFor(() => expect(first.messages()).toContain('[etcd] writing'), soon)
  await first.end()

  const second = world.live()
  second.loop.start()
  await waitFor(() => expect(second.reasons()).toContain('StepFoundAgain'), soon)
  await world.remove('hold-init')
  await phaseBecomes(second, 'Running')
  expect(world.begun('init')).toBe(1)
  expect(second.messages().filter((each) => each === '[certs] making')).toHaveLength(1)
  expect(second.messages().filter((each) => each === '[etcd] writing')).toHaveLength(1)
})

it('a step that ended while the daemon was away is taken as it ended', async () => {
  const world = await createLoopWorld()
  world.put('hold-prepare')
  const first = world.live()
  first.accept()
  first.loop.start()
  await waitFor(() => expect(world.begun('prepare')).toBe(1), soon)
  await first.end()
  world.put('fail-prepare', 'no room for containerd; make room')
  await world.remove('hold-prepare')

  const second = world.live()
  second.loop.start()
  await phaseBecomes(second, 'Failed')
  expect(second.loop.status()).toMatchObject({
    state: 'Error',
    reason: 'Do prepare: no room for containerd; make room',
  })
  expect(world.begun('prepare')).toBe(1)
})

it('the end of an earlier try is not taken for that of a later one', async () => {
  const world = await createLoopWorld()
  world.put('fail-init', 'the port 6443 is taken')
  const clock = createRunningClock()
  const first = world.live({ clock })
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Failed')
  await first.end()
  await world.remove('fail-init')
  world.put('hold-init')
  clock.turn(3_600_000)

  const second = world.live({ clock })
  second.loop.start()
  await waitFor(() => expect(world.begun('init')).toBe(2), soon)
  expect(second.loop.status()).toMatchObject({ phase: 'Failed' })
  await world.remove('hold-init')
  await phaseBecomes(second, 'Running')
  expect(second.steps.find('init')).toMatchObject({ state: 'done', failures: 0, reason: '' })
})

it('a call that was cut off by the end of the daemon is done anew', async () => {
  const world = await createLoopWorld()
  world.put('hold-apply')
  const first = world.live()
  first.accept()
  first.loop.start()
  await waitFor(() => expect(first.steps.find('p1/web apply')?.state).toBe('running'), soon)
  await first.end()
  expect(world.has('applied-web')).toBe(false)
  await world.remove('hold-apply')
  const second = world.live()
  second.loop.start()
  await phaseBecomes(second, 'Running')
  expect(second.reasons()).toContain('StepCutOff')
})

it('a deletion ends the running step of a provisioning, and takes away what it has done', async () => {
  const world = await createLoopWorld()
  world.put('hold-init')
  const life = world.live()
  life.accept()
  life.loop.start()
  await waitFor(() => expect(world.begun('init')).toBe(1), soon)
  life.delete()
  await isGone(life)
  expect(life.reasons()).toContain('StepStopped')
  expect(world.has('is-init')).toBe(false)
  expect(world.begun('reset')).toBe(1)
})

it('a deletion ends a step that another life of the daemon began', async () => {
  const world = await createLoopWorld(undefined, { asProcesses: true })
  world.put('hold-init')
  const first = world.live()
  first.accept()
  first.loop.start()
  await waitFor(() => expect(world.begun('init')).toBe(1), soon)
  await first.end()
  const second = world.live()
  second.store.requestDeletion(Date.now() + 1)
  second.loop.start()
  await isGone(second)
  expect(world.has('is-init')).toBe(false)
})

it('a deletion that was interrupted continues, and its running step is not ended', async () => {
  const { world, life: first } = await runningCluster()
  world.put('hold-reset')
  first.delete()
  await waitFor(() => expect(world.begun('reset')).toBe(1), soon)
  await first.end()
  const second = world.live()
  second.loop.start()
  await waitFor(() => expect(second.reasons()).toContain('StepFoundAgain'), soon)
  await world.remove('hold-reset')
  await isGone(second)
  expect(world.begun('reset')).toBe(1)
})

it.each([
  ['before a deletion is asked for', -86_400_000, 0],
  ['after a deletion is asked for', 0, -86_400_000],
])(
  'a clock that is set back %s does not change which step the deletion ends',
  async (_when, beforeMs, afterMs) => {
    const world = await createLoopWorld()
    let aheadMs = 0
    const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() }
    world.put('hold-init')
    const first = world.live({ clock })
    first.accept()
    first.loop.start()
    await waitFor(() => expect(world.begun('init')).toBe(1), soon)
    await first.end()
    aheadMs += beforeMs
    const second = world.live({ clock })
    second.store.requestDeletion(clock.now())
    aheadMs += afterMs
    world.put('hold-reset')
    second.loop.start()
    await waitFor(() => expect(world.begun('reset')).toBe(1), soon)
    expect(second.reasons()).toContain('StepStopped')
    await second.end()

    const third = world.live({ clock })
    third.loop.start()
    await waitFor(
      () => expect(third.reasons().filter((each) => each === 'StepFoundAgain')).toHaveLength(2),
      soon,
    )
    await world.remove('hold-reset')
    await isGone(third)
    expect(world.begun('reset')).toBe(1)
  },
)

it('a pack that fails does not stop another of the same order, but the next order waits', async () => {
  const world = await createLoopWorld([wantedPack('bad', 0), wantedPack('good', 0), wantedPack('late', 1)])
  world.put('fail-apply', 'the chart is broken')
  const life = world.live()
  life.accept()
  life.loop.start()
  await waitFor(() => expect(life.steps.find('p1/good apply')?.state).toBe('failed'), soon)
  expect(life.loop.status()?.reason).toMatch(/p1\/bad apply: the chart is broken/)
  expect(life.steps.find('p1/late apply')).toBeUndefined()
  expect(life.reasons()).toContain('PackFailed')
})

it('a failed step waits as long as was stored, also after a restart and with a clock that was set back', async () => {
  const world = await createLoopWorld()
  world.put('fail-record', 'no')
  const first = world.live()
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Failed')
  expect(first.steps.find('record')).toMatchObject({ failures: 1, retryMs: 10_000 })
  await first.end()
  const clock = createRunningClock()
  clock.turn(-86_400_000)
  const second = world.live({ clock })
  second.loop.start()
  // The clock runs meanwhile.
  clock.turn(4_000)
  await waitFor(() => expect(second.loop.observed()).toBeDefined(), soon)
  expect(world.begun('record')).toBe(1)
  clock.turn(7_000)
  await waitFor(() => expect(world.begun('record')).toBe(2), soon)
})

it('a sensitive value is in no event, step or log line', async () => {
  const secret = 'p4ss-w0rd-of-the-shop'
  const world = await createLoopWorld()
  world.put('lines-init', `[certs] for ${secret}\n`)
  // Part of it stands where a long reason is cut.
  world.put(
    'fail-apply',
    `refused: ${secret} ${'.'.repeat(990 - secret.length)}${secret}, and ${'.'.repeat(500)}`,
  )
  const life = world.live()
  life.accept({ sensitive: [secret] })
  life.loop.start()
  await phaseBecomes(life, 'Failed')
  await life.end()
  const reread = world.live()
  expect(reread.messages()).toContain('[certs] for ********')
  expect(reread.steps.list().map(({ reason }) => reason.length)).toContain(1_001)
  for (const piece of [secret, secret.slice(0, 6)]) {
    expect(JSON.stringify([reread.all(), reread.steps.list(), reread.store.current()?.status])).not.toContain(
      piece,
    )
    expect(JSON.stringify(world.lines.filter(({ level }) => level >= 30))).not.toContain(piece)
  }
})

it('an API server that is silent for a minute makes the state Unknown, also over a restart, and it comes back', async () => {
  const world = await createLoopWorld()
  const clock = createRunningClock()
  const first = world.live({ clock })
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Running')
  world.put('silent')
  await waitFor(() => expect(first.loop.status()?.health.status).toBe('Unhealthy'), soon)
  expect(first.loop.status()?.state).toBe('Running')
  clock.turn(61_000)
  await phaseBecomes(first, 'Unknown')
  expect(first.loop.status()?.state).toBe('Error')
  await first.end()
  const second = world.live({ clock })
  second.loop.start()
  await waitFor(() => expect(second.loop.observed()).toBeDefined(), soon)
  expect(second.loop.status()?.phase).toBe('Unknown')
  await world.remove('silent')
  await phaseBecomes(second, 'Running')
  expect(second.reasons().filter((each) => each === 'ApiAnswers')).toHaveLength(2)
})

it('a workload that goes down after Running makes the health Unhealthy, and nothing is applied again', async () => {
  const { world, life } = await runningCluster()
  await waitFor(() => expect(life.steps.find('p1/web wait')?.state).toBe('done'), soon)
  await world.remove('available-web')
  await waitFor(() => expect(life.loop.status()?.health.status).toBe('Unhealthy'), soon)
  expect(life.loop.status()).toMatchObject({
    state: 'Running',
    health: { reason: 'web: Deployment web is down' },
  })
  await waitFor(() => expect(life.reasons()).toContain('Unhealthy'), soon)
  world.put('available-web', wantedPack('web').digest)
  await waitFor(() => expect(life.loop.status()?.health.status).toBe('Healthy'), soon)
})

it('a database that cannot be written is the reason of the state, and the loop continues when it can', async () => {
  const world = await createLoopWorld()
  const life = world.live()
  life.accept()
  const other = new DatabaseSync(world.file('state/edgehostd.db'))
  onTestFinished(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  life.loop.start()
  await waitFor(
    () => expect(life.loop.status()?.reason).toMatch(/^the database cannot be written \(\/.*edgehostd\.db: /),
    soon,
  )
  expect(life.loop.status()?.state).toBe('Error')
  other.exec('ROLLBACK')
  await phaseBecomes(life, 'Running')
})

it('a step whose work does not show fails after some tries, instead of being done for ever', async () => {
  const { world, life } = await runningCluster()
  world.put('in-vain-restore')
  life.delete()
  await waitFor(() => expect(life.steps.find('restore')?.reason).toMatch(/still to be done/), soon)
  expect(world.begun('restore')).toBeGreaterThan(1)
  expect(life.loop.status()).toMatchObject({ state: 'Deleting', reason: /still to be done/ })
})

const changed = (digest: string) => ({ ...wantedPack('web'), digest })
const outcomes = (life: Life) =>
  life.revisions.list().map(({ generation, outcome }) => `${generation} ${outcome}`)

it('a revision is applied to the running cluster: only what changed, and the cluster is Running with it', async () => {
  const world = await createLoopWorld([wantedPack('cni', 0), wantedPack('web', 1)])
  const life = world.live()
  life.accept()
  life.loop.start()
  await phaseBecomes(life, 'Running')
  life.revise(2, [wantedPack('cni', 0), { ...changed('second'), order: 1 }])
  // At once: a client that wrote it and waits for Running must not take that of before.
  expect(life.loop.status()).toMatchObject({ state: 'Provisioning', phase: 'Pending' })
  await waitFor(() => expect(outcomes(life)).toEqual(['2 good', '1 good']), soon)
  expect(life.loop.status()).toMatchObject({ state: 'Running', phase: 'Running' })
  expect(life.steps.list().map(({ key }) => key)).toEqual(['p1/web apply', 'p1/web wait'])
  expect(life.store.current()).toMatchObject({ generation: 2, goodGeneration: 2, ranGeneration: 2 })
  expect(life.reasons()).toEqual(expect.arrayContaining(['UpdateStarted', 'Updated']))
})

it('a revision that is not available in time is taken back: its step is ended, and the last good one runs again', async () => {
  const world = await createLoopWorld()
  const life = world.live({ availableMs: 300 })
  life.accept()
  life.loop.start()
  await phaseBecomes(life, 'Running')
  world.put('down-second')
  world.put('why-p1-web', 'it ended with exit code 3')
  life.revise(2, [changed('second')])
  await waitFor(() => expect(outcomes(life)).toEqual(['2 rolledBack', '1 good']), soon)
  expect(life.store.current()).toMatchObject({ generation: 1, goodGeneration: 1, ranGeneration: 1 })
  expect(life.loop.status()).toMatchObject({ state: 'Running', health: { status: 'Healthy' } })
  expect(life.revisions.find(2)?.reason).toMatch(
    /Deployment web is down, 0 s after it was begun; pod web-1: container web: it ended with exit code 3$/,
  )
  expect(life.reasons()).toEqual(
    expect.arrayContaining(['UpdateFailed', 'RollbackStarted', 'StepStopped', 'RolledBack']),
  )
  // A failed revision does not hold up the next one.
  life.revise(3, [changed('third')])
  await waitFor(() => expect(outcomes(life)[0]).toBe('3 good'), soon)
})

it('a write while a step runs does not cut that step: the newer revision is begun after it', async () => {
  const { world, life } = await runningCluster()
  world.put('hold-apply')
  life.revise(2, [changed('second')])
  await waitFor(() => expect(life.steps.find('p1/web apply')?.state).toBe('running'), soon)
  life.revise(3, [changed('third')])
  await waitFor(() => expect(life.loop.observed()).toBeDefined(), soon)
  expect(outcomes(life)).toEqual(['3 waiting', '2 applying', '1 good'])
  await world.remove('hold-apply')
  await waitFor(() => expect(outcomes(life)[0]).toBe('3 good'), soon)
  expect(life.reasons()).not.toContain('StepStopped')
  expect(life.reasons().filter((each) => each === 'StepCutOff')).toEqual([])
  expect(life.messages().filter((each) => each.includes('applying web')).length).toBeGreaterThanOrEqual(2)
})

it('a write ends the wait for a pack whose pods are in trouble: the newer revision is begun at once', async () => {
  const { world, life } = await runningCluster()
  world.put('down-second')
  world.put('why-p1-web', 'it ended with exit code 3')
  life.revise(2, [changed('second')])
  await waitFor(() => expect(life.steps.find('p1/web wait')?.state).toBe('running'), soon)
  life.revise(3, [changed('third')])
  await waitFor(() => expect(outcomes(life)).toEqual(['3 good', '2 superseded', '1 good']), soon)
  expect(life.reasons()).toContain('StepStopped')
  expect(life.reasons()).not.toContain('StepFailed')
})

it('the last of several revisions that wait is applied, one with a time at that time, also after a restart', async () => {
  const world = await createLoopWorld()
  const clock = createRunningClock()
  const first = world.live({ clock })
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Running')
  first.revise(2, [changed('second')], { scheduleAt: clock.now() + 3_600_000 })
  first.revise(3, [changed('third')], { scheduleAt: clock.now() + 3_600_000 })
  await first.end()
  const second = world.live({ clock })
  second.loop.start()
  await phaseBecomes(second, 'Running')
  expect(outcomes(second)).toEqual(['3 waiting', '2 superseded', '1 good'])
  clock.turn(3_600_001)
  second.loop.wake()
  await waitFor(() => expect(outcomes(second)).toEqual(['3 good', '2 superseded', '1 good']), soon)
})

it('a revision waits for what the host does, as a change of its network, and is begun after it', async () => {
  const world = await createLoopWorld()
  const hold = createHold()
  const life = world.live(hold)
  life.accept()
  life.loop.start()
  await phaseBecomes(life, 'Running')
  hold.turn(true)
  life.revise(2, [changed('second')])
  const before = hold.asked()
  life.loop.wake()
  await waitFor(() => expect(hold.asked()).toBeGreaterThan(before + 1), soon)
  expect(outcomes(life)).toEqual(['2 waiting', '1 good'])
  hold.turn(false)
  life.loop.wake()
  await waitFor(() => expect(outcomes(life)).toEqual(['2 good', '1 good']), soon)
})

it('a deletion is not held up by a revision that is applied, and takes all revisions with it', async () => {
  const { world, life } = await runningCluster()
  world.put('down-second')
  life.revise(2, [changed('second')])
  await waitFor(() => expect(life.store.current()?.generation).toBe(2), soon)
  life.delete()
  await isGone(life)
  expect(life.revisions.list()).toEqual([])
})

it('the time that is left to a revision is stored: neither the end of the daemon nor a clock that is set starts it anew', async () => {
  const world = await createLoopWorld()
  let clock = createRunningClock()
  const first = world.live({ clock })
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Running')
  expect(first.loop.deadline()).toBeUndefined()
  world.put('down-second')
  first.revise(2, [changed('second')])
  const leftOf = (life: Life) => life.loop.deadline()?.leftMs ?? 0
  await waitFor(() => expect(leftOf(first)).toBeGreaterThan(590_000), soon)
  expect(first.loop.deadline()?.action).toBe('takenBack')
  clock.turn(400_000)
  await waitFor(() => expect(leftOf(first)).toBeLessThan(200_000), soon)
  await waitFor(() => expect(first.store.current()?.progress?.elsewhereMs).toBeGreaterThan(400_000), soon)
  const stored = first.store.current()?.progress
  await first.end()

  // The host was off for a day, its monotonic clock begins anew, and its clock was set.
  clock = createRunningClock()
  clock.turn(86_400_000)
  const second = world.live({ clock })
  second.loop.start()
  await waitFor(() => expect(leftOf(second)).toBeGreaterThan(0), soon)
  expect(leftOf(second)).toBeLessThanOrEqual(600_000 - (stored?.elsewhereMs ?? 0))
  expect(leftOf(second)).toBeGreaterThan(150_000)
  clock.turn(200_000)
  await waitFor(() => expect(outcomes(second)[0]).toBe('2 rolledBack'), soon)
  await waitFor(() => expect(second.loop.deadline()).toBeUndefined(), soon)
})
