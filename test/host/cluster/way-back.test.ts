import { statSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import { readDesired } from '../../../src/cluster/desired/prepared.ts'
import { createLoopWorld, nextVersion } from '../../support/cluster-loop.ts'
import { wantedPack } from '../../support/cluster-parts.ts'
import { createRunningClock } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

const soon = { timeout: 30_000, interval: 20 }
vi.setConfig({ testTimeout: 60_000 })
type Life = ReturnType<Awaited<ReturnType<typeof createLoopWorld>>['live']>

const changed = (digest: string) => ({ ...wantedPack('web'), digest })
const outcomes = (life: Life) =>
  life.revisions.list().map(({ generation, outcome, origin }) => `${generation} ${outcome} ${origin}`)
const become = (life: Life, ...expected: string[]) =>
  waitFor(() => expect(outcomes(life)).toEqual(expected), soon)

type World = Awaited<ReturnType<typeof createLoopWorld>>

/** A cluster that is Running, and an upgrade of it with a pack that does not become available. */
async function failingUpgrade(prepare: (world: World) => void = () => undefined) {
  const world = await createLoopWorld()
  prepare(world)
  const clock = createRunningClock()
  const life = world.live({ clock })
  life.accept()
  life.loop.start()
  await become(life, '1 good create')
  world.put('down-second')
  world.put('why-p1-web', 'it ended with exit code 3')
  life.revise(2, [changed('second')], { version: nextVersion })
  /** The time of the revision is over. */
  const late = async () => {
    await waitFor(() => expect(life.steps.find('p1/web wait')?.state).toBe('running'), soon)
    expect(world.text('applied-web')).toBe('second')
    clock.turn(601_000)
  }
  return { world, life, clock, late }
}

const wayBack = ['3 good goingBack', '2 rolledBack update', '1 good create'] as const

it('a pack that fails on a new Kubernetes goes back as a pack, and Kubernetes stays', async () => {
  const { world, life, late } = await failingUpgrade()
  await late()
  await become(life, ...wayBack)
  const record = life.store.current()!
  expect(record).toMatchObject({ generation: 3, goodGeneration: 3, ranGeneration: 3 })
  expect(record.summary).toMatchObject({ kubernetes: { version: nextVersion }, kubernetesOf: 2 })
  expect(await readDesired(record)).toMatchObject({
    ...{ generation: 3, folder: world.file('cluster/3') },
    ...{ kubernetes: { version: nextVersion }, packs: [{ digest: wantedPack('web').digest }] },
  })
  expect(life.loop.status()).toMatchObject({ state: 'Running', health: { status: 'Healthy' } })
  expect([world.begun('kubernetes-upgrade'), world.begun('kubernetes-restore')]).toEqual([1, 0])
  const failure = 'pod web-1: container web: it ended with exit code 3'
  expect(life.revisions.find(2)?.reason).toMatch(
    new RegExp(
      `${failure}; the packs of revision 1 run again, as revision 3, and Kubernetes ${nextVersion} stays$`,
    ),
  )
  expect(life.messages()).toContain(
    `the packs, values and settings of revision 1 are applied again, as revision 3; Kubernetes ${nextVersion} stays`,
  )
  expect(life.messages().filter((each) => each.includes('run again'))).toEqual([
    expect.stringMatching(/^the packs of revision 1 run again, .* stays, since revision 2 failed: .*code 3$/),
  ])
  expect(life.reasons()).toEqual(
    expect.arrayContaining(['UpdateFailed', 'RollbackStarted', 'RolledBack', 'Running']),
  )
  expect(life.reasons()).not.toContain('Updated')
})

it('the next revision after it is applied as any other, and one that fails goes back to it', async () => {
  const { world, life, late } = await failingUpgrade()
  await late()
  await become(life, ...wayBack)
  life.revise(4, [changed('second')], { version: nextVersion })
  await waitFor(() => expect(life.store.current()?.generation).toBe(4), soon)
  await late()
  await become(life, '4 rolledBack update', ...wayBack)
  expect(life.store.current()).toMatchObject({ generation: 3, goodGeneration: 3, ranGeneration: 3 })
  expect(life.messages()).toContainEqual(
    expect.stringMatching(/^the cluster runs with revision 3 again, since revision 4 failed: /),
  )
  life.revise(5, [changed('third')], { version: nextVersion })
  await become(life, '5 good update', '4 rolledBack update', ...wayBack)
  expect([world.begun('kubernetes-upgrade'), world.begun('kubernetes-restore')]).toEqual([1, 0])
})

it('a pack of before that does not run on the new Kubernetes either is an error, and a later revision ends it', async () => {
  const { world, life, clock, late } = await failingUpgrade()
  world.put(`fail-apply-${wantedPack('web').digest}`, 'no matches for kind Old')
  await late()
  await become(life, '3 applying goingBack', '2 failed update', '1 good create')
  await waitFor(() => expect(life.steps.find('p1/web apply')?.state).toBe('failed'), soon)
  clock.turn(721_000)
  await waitFor(() => expect(life.loop.status()?.reason).toMatch(/^RollbackFailed/), soon)
  expect(life.loop.status()).toMatchObject({
    state: 'Error',
    reason: expect.stringMatching(
      /revision 3 does not run: .* edgehostctl cluster rollback NUMBER where the host is managed there, otherwise a change on its platform$/,
    ),
  })
  expect(life.reasons().filter((each) => each === 'RollbackStarted')).toHaveLength(1)
  life.revise(4, [changed('third')], { version: nextVersion })
  await become(life, '4 good update', '3 superseded goingBack', '2 failed update', '1 good create')
  expect(world.begun('kubernetes-restore')).toBe(0)
})

it('a daemon that ends while its packs go back continues with that, and begins no other way back', async () => {
  const { world, life: first, late } = await failingUpgrade()
  world.put(`down-${wantedPack('web').digest}`)
  await late()
  await become(first, '3 applying goingBack', '2 failed update', '1 good create')
  await waitFor(() => expect(first.steps.find('p1/web wait')?.state).toBe('running'), soon)
  await first.end()
  const second = world.live()
  second.loop.start()
  await waitFor(() => expect(second.loop.observed()).toBeDefined(), soon)
  await world.remove(`down-${wantedPack('web').digest}`)
  await become(second, ...wayBack)
  expect(second.reasons().filter((each) => each === 'RollbackStarted')).toHaveLength(1)
})

it('a revision that waits for its time keeps waiting, and is begun then with its own number', async () => {
  const { life, clock, late } = await failingUpgrade()
  await waitFor(() => expect(life.store.current()?.generation).toBe(2), soon)
  life.revise(3, [changed('third')], { version: nextVersion, scheduleAt: clock.now() + 3_600_000 })
  await late()
  await become(life, '4 good goingBack', '3 waiting update', '2 rolledBack update', '1 good create')
  clock.turn(3_600_001)
  life.loop.wake()
  await become(life, '4 good goingBack', '3 good update', '2 rolledBack update', '1 good create')
  expect(life.store.current()).toMatchObject({ generation: 3, goodGeneration: 3 })
})

it('a further upgrade that is refused before the packs of the first one came leaves Kubernetes as it is', async () => {
  const { world, life } = await failingUpgrade(({ put }) => put('hold-kubernetes-upgrade'))
  world.put('fail-kubernetes-check', 'UpgradeRefused: /data has 1 MiB free')
  await waitFor(() => expect(world.begun('kubernetes-upgrade')).toBe(1), soon)
  life.revise(3, [changed('third')], { version: '1.36.0' })
  await world.remove('hold-kubernetes-upgrade')
  const rest = ['3 rolledBack update', '2 superseded update', '1 good create']
  await become(life, '4 good goingBack', ...rest)
  expect(life.store.current()?.summary).toMatchObject({
    ...{ kubernetes: { version: nextVersion }, kubernetesOf: 2 },
  })
  expect([world.begun('kubernetes-check'), world.begun('kubernetes-restore')]).toEqual([1, 0])
})

it('its folder has the files of the good revision without taking room, and is made again where a kill left a part', async () => {
  const { world, life, late } = await failingUpgrade(({ put }) => {
    put('cluster/1/definition.spc', 'archive')
    put('cluster/1/details.json', JSON.stringify([profile('1.34.4')]))
  })
  world.put('cluster/2/details.json', JSON.stringify([profile(nextVersion)]))
  world.fold('cluster/3.tmp/rest')
  world.fold('cluster/3/rest')
  await late()
  await become(life, ...wayBack)
  const inode = (number: number) => statSync(world.file(`cluster/${number}/definition.spc`)).ino
  expect(inode(3)).toBe(inode(1))
  expect(world.names('cluster/3').sort()).toEqual(['definition.spc', 'details.json', 'wanted.json'])
  expect(world.names('cluster').sort()).toEqual(['1', '2', '3'])
  expect(JSON.parse(world.text('cluster/3/details.json'))).toEqual([profile(nextVersion)])
})

const profile = (version: string) => ({
  profileUid: 'p1',
  packs: [
    { name: 'edge-k8s', layer: 'k8s', version },
    { name: 'web', layer: 'addon', version: '1.0.0' },
  ],
})
