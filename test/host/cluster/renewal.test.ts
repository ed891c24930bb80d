import { expect, it } from 'vitest'
import { createAddEvent, createEventLog } from '../../../src/cluster/events/event-log.ts'
import { createCertificates } from '../../../src/cluster/api/certificates.ts'
import { renewalStep } from '../../../src/cluster/loop/step.ts'
import { noCertificates } from '../../../src/cluster/engine/certificates.ts'
import { createHold, createLoopWorld } from '../../support/cluster-loop.ts'
import { wantedPack } from '../../support/cluster-parts.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

const soon = { timeout: 20_000, interval: 20 }
type World = Awaited<ReturnType<typeof createLoopWorld>>
type Life = ReturnType<World['live']>

const begin = Date.parse('2026-11-23T18:00:00Z')
const life = { issuedAt: begin, writtenAt: begin, expiresAt: begin + 86_400_000 }
const seen = {
  ...noCertificates,
  certificates: [{ name: 'apiserver', authority: 'ca', ...life, renewedBy: 'kubeadm' as const }],
}

function certificatesOf({ database, store, steps, loop }: Life, found = seen) {
  const clock = createTurningClock()
  const { log } = captureLog()
  const limits = { retentionDays: 90, maximum: 5_000 }
  return createCertificates({
    ...{ database, store, steps, clock, onAsked: () => loop.wake(), refuseBusy: () => undefined },
    engine: { certificates: async () => found },
    add: createAddEvent(createEventLog({ database, limits, clock, log })),
  })
}
const phaseBecomes = (each: Life, phase: string) =>
  waitFor(() => expect(each.loop.status()?.phase).toBe(phase), soon)
const renewalOf = async (each: Life) => (await certificatesOf(each).details()).renewal
const isDone = (each: Life) =>
  waitFor(async () => expect((await renewalOf(each))?.endTimestamp).toBeDefined(), soon)

async function run(world: World): Promise<Life> {
  const first = world.live()
  first.accept()
  first.loop.start()
  await phaseBecomes(first, 'Running')
  return first
}

it('a renewal that is asked for is done once, and a second request while it is under way is the same', async () => {
  const world = await createLoopWorld()
  const first = await run(world)
  world.put(`hold-${renewalStep}`)
  const asked = await certificatesOf(first).renew('ada')
  await waitFor(() => expect(world.begun(renewalStep)).toBe(1), soon)
  expect(await certificatesOf(first).renew('bob')).toEqual({ ...asked, isRepeated: true })
  expect(await renewalOf(first)).toMatchObject({ uid: asked.uid, by: 'ada' })
  await world.remove(`hold-${renewalStep}`)
  await isDone(first)
  expect(first.steps.find(renewalStep)).toMatchObject({ state: 'done' })
  expect(first.reasons()).toContain('RenewalRequested')
  const again = await certificatesOf(first).renew('ada')
  expect(again).toMatchObject({ isRepeated: false })
  expect(again.uid).not.toBe(asked.uid)
  await isDone(first)
  expect(world.begun(renewalStep)).toBe(2)
})

it('a request outlives the daemon, and the end of its step while that was away is found', async () => {
  const world = await createLoopWorld()
  const first = await run(world)
  world.put(`hold-${renewalStep}`)
  const { uid } = await certificatesOf(first).renew('ada')
  await waitFor(() => expect(world.begun(renewalStep)).toBe(1), soon)
  await first.end()
  await world.remove(`hold-${renewalStep}`)
  await waitFor(() => expect(world.has(`is-${renewalStep}`)).toBe(true), soon)

  const second = world.live()
  expect(await renewalOf(second)).toMatchObject({ uid, by: 'ada' })
  second.loop.start()
  await isDone(second)
  expect(world.begun(renewalStep)).toBe(1)
})

it('a request that no step was begun for when the daemon ended is done by the next', async () => {
  const world = await createLoopWorld()
  const first = await run(world)
  await first.end()
  const second = world.live()
  await certificatesOf(second).renew('ada')
  await second.end()
  const third = world.live()
  third.loop.start()
  await isDone(third)
  expect(world.begun(renewalStep)).toBe(1)
})

it('a renewal that fails says why, is tried again later, and holds up no pack', async () => {
  const world = await createLoopWorld([wantedPack('web', 0)])
  const first = await run(world)
  world.put(`fail-${renewalStep}`, 'kubeadm certs renew failed: no space')
  await certificatesOf(first).renew('ada')
  await waitFor(
    async () => expect((await renewalOf(first))?.reason).toBe('kubeadm certs renew failed: no space'),
    soon,
  )
  expect(first.messages().some((each) => /no space; tried again in \d+ s$/.test(each))).toBe(true)
  first.revise(2, [{ ...wantedPack('web', 0), digest: 'another' }])
  await waitFor(() => expect(world.has('applied-web')).toBe(true), soon)
  await waitFor(() => expect(first.steps.find('p1/web apply')?.state).toBe('done'), soon)
  await waitFor(() => expect(first.store.current()?.generation).toBe(2), soon)
  expect(await renewalOf(first)).not.toHaveProperty('endTimestamp')
})

it('a renewal that is due by itself is done without a request', async () => {
  const world = await createLoopWorld()
  const first = await run(world)
  world.put('due')
  await waitFor(() => expect(world.begun(renewalStep)).toBe(1), soon)
  await world.remove('due')
  await phaseBecomes(first, 'Running')
  expect(await renewalOf(first)).toBeUndefined()
})

it('a renewal waits for what the host does, as a change of its network, and is done after it', async () => {
  const world = await createLoopWorld()
  const hold = createHold()
  const life = world.live(hold)
  life.accept()
  life.loop.start()
  await phaseBecomes(life, 'Running')
  hold.turn(true)
  world.put('due')
  const before = hold.asked()
  life.loop.wake()
  // Some turns of the loop with the plan of the renewal.
  await waitFor(() => expect(hold.asked()).toBeGreaterThan(before + 6), soon)
  expect(world.begun(renewalStep)).toBe(0)
  hold.turn(false)
  life.loop.wake()
  await waitFor(() => expect(world.begun(renewalStep)).toBe(1), soon)
  await world.remove('due')
  await phaseBecomes(life, 'Running')
})

it('without a cluster there are none; before the control plane, and while it is deleted, they are not renewed', async () => {
  const world = await createLoopWorld()
  const first = world.live()
  await expect(certificatesOf(first).details()).rejects.toMatchObject({ code: 'NotFound' })
  await expect(certificatesOf(first).renew('ada')).rejects.toMatchObject({ code: 'NotFound' })
  first.accept()
  const none = { ...noCertificates, certificates: [] }
  await expect(certificatesOf(first, none).renew('ada')).rejects.toMatchObject({ code: 'NoCertificates' })
  first.store.requestDeletion(1)
  await expect(certificatesOf(first).renew('ada')).rejects.toMatchObject({ code: 'ClusterDeleting' })
  expect(await certificatesOf(first).details()).toMatchObject({ certificates: [] })
})
