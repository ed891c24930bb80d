import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withSettings } from '../../../../src/cluster/desired/edits.ts'
import type { PreparedVariable } from '../../../../src/cluster/desired/prepared.ts'
import type { PreflightProblem } from '../../../../src/cluster/desired/preflight-codes.ts'
import type { ClusterConfiguration } from '../../../../src/cluster/schemas.ts'
import {
  by,
  createChangingCluster,
  posted,
  rollBack,
  secret,
  signal,
  spec,
  withReplicas,
  type ChangingCluster,
} from '../../../support/changing-cluster.ts'

describe('a time for a change', () => {
  const at = (clock: ChangingCluster['clock'], seconds: number) =>
    new Date(clock.now() + seconds * 1_000).toISOString()

  it('a change with a time waits for it, GET shows the time until it has come, and sending it back changes nothing', async () => {
    const { write, shown, revisions, clock, events, activate } = createChangingCluster()
    const time = at(clock, 60)
    await write((document) => spec(withReplicas('3')(document), { scheduleAt: time }))
    expect(revisions.newest()).toMatchObject({ outcome: 'waiting', scheduleAt: Date.parse(time) })
    expect(revisions.newest()?.posted.spec).not.toHaveProperty('scheduleAt')
    expect(events[0]).toContain(`UpdateScheduled: revision 2 of ada`)
    expect(shown().spec?.scheduleAt).toBe(time)
    expect(await write((document) => document)).toMatchObject({ revision: undefined })
    activate()
    expect(shown().spec?.scheduleAt).toBeUndefined()
    expect(await write((document) => document)).toMatchObject({ revision: undefined })
  })

  it('the next write takes the place of one with a time, also one that only leaves the time out', async () => {
    const { write, revisions, clock } = createChangingCluster()
    await write((document) => spec(withReplicas('3')(document), { scheduleAt: at(clock, 60) }))
    expect(await write((document) => spec(document, { scheduleAt: '' }))).toMatchObject({ revision: 3 })
    expect(revisions.list().map(({ outcome, scheduleAt }) => [outcome, scheduleAt])).toMatchObject([
      ['waiting', null],
      ['superseded', expect.any(Number)],
      ['good', null],
    ])
    expect(revisions.list().map(({ endedAt }) => endedAt)).toEqual([null, clock.now(), expect.any(Number)])
  })

  it.each([
    'tomorrow',
    '2031-05-01',
    '2031-05-01T02:00:00',
    '2020-05-01T02:00:00Z',
    '2031-13-01T02:00:00Z',
    '2031-02-29T02:00:00Z',
    '2031-05-01T24:00:00Z',
  ])('the time %s is refused', async (scheduleAt) => {
    const { write } = createChangingCluster()
    await expect(write((document) => spec(document, { scheduleAt }))).rejects.toMatchObject({
      code: 'BadRequest',
      details: { field: 'spec.scheduleAt' },
    })
  })
})

describe('missing values', () => {
  const message = 'variable token is required'
  const missing: PreflightProblem = { code: 'VariableInvalid', severity: 'error', message }
  const variable: PreparedVariable = {
    ...{ profileUid: 'p1', name: 'token', value: '', isSensitive: false, missing: message },
  }

  it('a change that lacks only values of required variables is held, and the next write continues', async () => {
    const { write, found, revisions, events, store } = createChangingCluster()
    found.problems.push(missing)
    found.variables.push(variable)
    expect(await write(withReplicas('3'))).toMatchObject({ revision: 2 })
    expect(revisions.newest()).toMatchObject({ outcome: 'held', reason: `values are missing: ${message}` })
    expect(events[0]).toContain('UpdateHeld')
    expect(store.current()?.generation).toBe(1)
    found.problems.length = 0
    found.variables.length = 0
    expect(await write(withReplicas('4'))).toMatchObject({ revision: 3 })
    expect(revisions.find(2)?.outcome).toBe('superseded')
  })

  it('a change that takes away the value of a required variable is refused before anything is written', async () => {
    const { change, write, found, revisions } = createChangingCluster()
    const gone = 'variable password is required'
    found.problems.push({ ...missing, message: gone })
    found.variables.push({ profileUid: 'p1', name: 'password', value: '', isSensitive: true, missing: gone })
    const only = (document: ClusterConfiguration) =>
      spec(document, { profileVariables: [{ name: 'replicas', value: '3' }] })
    const edit = async (document: ClusterConfiguration) => only(document)
    const tried = await change.tryWrite({ ifMatch: undefined, by, edit }, signal)
    expect(tried).toMatchObject({ isPossible: false, isHeld: false })
    await expect(write(only)).rejects.toMatchObject({
      code: 'PreflightFailed',
      details: {
        problems: [
          {
            message: `${gone}, and this change would take its value away; send the value, or ******** to keep it`,
          },
        ],
      },
    })
    expect(revisions.list()).toHaveLength(1)
  })

  it('with another error beside it the write is refused', async () => {
    const { write, found } = createChangingCluster()
    found.problems.push(missing, { code: 'ImageMissing', severity: 'error', message: 'no image' })
    found.variables.push(variable)
    await expect(write(withReplicas('3'))).rejects.toMatchObject({ code: 'PreflightFailed' })
  })
})

describe('a dry run', () => {
  it('a dry run plans with what runs, and changes nothing', async () => {
    const { change, revisions, generations, done } = createChangingCluster()
    const { plan, ...rest } = await change.tryWrite(
      { ifMatch: undefined, by, edit: async (document) => withReplicas('3')(document) },
      signal,
    )
    expect(rest).toMatchObject({ isPossible: true, isChanged: true, isHeld: false, problems: [] })
    expect(plan.map(({ key }) => key)).toEqual(['p1/web apply', 'p1/web wait'])
    expect(rest.diff?.isEmpty).toBe(true)
    expect([revisions.list().length, generations(), done]).toEqual([1, ['1'], []])
  })

  it('a dry run of what changes nothing plans nothing', async () => {
    const { change } = createChangingCluster()
    const same = { ifMatch: undefined, by, edit: async (document: ClusterConfiguration) => document }
    expect(await change.tryWrite(same, signal)).toMatchObject({ isChanged: false, plan: [] })
  })

  it('a dry run of what changes nothing shows what the change that waits would do', async () => {
    const { change, shown, write, activate, requests } = createChangingCluster()
    const edited = await withSettings({ ntpServers: ['192.0.2.1'] })(shown(), undefined as never)
    await write(() => edited)
    const same = { ifMatch: undefined, by, edit: async (document: ClusterConfiguration) => document }
    expect(await change.tryWrite(same, signal)).toMatchObject({
      ...{ isPossible: true, isChanged: false, isHeld: false },
      diff: { isEmpty: false, settings: { ntpServers: { from: [], to: ['192.0.2.1'] } } },
    })
    // With its own copy of the definition: that of the slot may be another one by now.
    expect(requests.at(-1)?.source?.file).toMatch(/\/2\/definition\.spc$/)
    activate()
    expect(await change.tryWrite(same, signal)).not.toHaveProperty('diff')
  })

  it('a dry run of a rollback says to which revision it goes', async () => {
    const { change, write, activate } = createChangingCluster()
    await write(withReplicas('3'))
    activate()
    const rollback = { ifMatch: undefined, by, revision: undefined, discardChanges: false }
    expect(await change.tryRollBack(rollback, signal)).toMatchObject({ isChanged: true, revision: 1 })
    expect(await change.tryRollBack({ ...rollback, revision: 2 }, signal)).toMatchObject({
      ...{ isChanged: false, revision: 2 },
    })
  })
})

describe('the way back', () => {
  it('a rollback makes a new revision with the configuration and the definition of the old one', async () => {
    const world = createChangingCluster()
    const { write, activate, revisions, requests } = world
    await write(withReplicas('3'))
    activate()
    expect(await rollBack(world)).toMatchObject({ revision: 3 })
    expect(revisions.newest()).toMatchObject({ origin: 'rollback', outcome: 'waiting', plain: posted })
    expect(requests.at(-1)?.source?.file).toMatch(/\/1\/definition\.spc$/)
  })

  it('a rollback to what runs changes nothing; one from a change that waits takes its place', async () => {
    const world = createChangingCluster()
    expect(await rollBack(world, 1)).toMatchObject({ revision: undefined })
    await world.write(withReplicas('3'))
    expect(await rollBack(world, 1)).toMatchObject({ revision: 3 })
    expect(world.revisions.find(2)?.outcome).toBe('superseded')
  })

  it('a rollback that names no revision goes from a change that waits to the one that runs, not to the one before it', async () => {
    const world = createChangingCluster()
    await world.write(withReplicas('3'))
    world.activate()
    await world.write(withReplicas('4'))
    expect(await rollBack(world)).toMatchObject({ revision: 4 })
    expect(world.revisions.newest()?.plain?.spec?.profileVariables?.[0]).toMatchObject({ value: '3' })
  })

  it('a revision that is not kept, or none before the present one, is refused', async () => {
    const world = createChangingCluster()
    for (const revision of [undefined, 7])
      await expect(rollBack(world, revision)).rejects.toMatchObject({
        code: 'BadRequest',
        details: { field: 'revision' },
      })
  })

  it('an older Kubernetes is gone back to only with discardChanges, and the refusal says the time of its copy', async () => {
    const copiedAt = Date.parse('2026-03-01T10:00:00.000Z')
    const world = createChangingCluster({ copiedAt })
    world.next.kubernetes = { ...world.next.kubernetes, version: '1.35.0' }
    await world.write(withReplicas('3'))
    world.activate()
    await expect(rollBack(world, 1)).rejects.toMatchObject({
      code: 'WouldDiscardChanges',
      details: { copyTimestamp: '2026-03-01T10:00:00.000Z' },
    })
    world.next.kubernetes = { ...world.next.kubernetes, version: '1.34.4' }
    expect(await rollBack(world, 1, true)).toMatchObject({ revision: 3 })
  })

  it('an older Kubernetes of which no copy is kept is refused, also with discardChanges', async () => {
    const world = createChangingCluster()
    world.next.kubernetes = { ...world.next.kubernetes, version: '1.35.0' }
    await world.write(withReplicas('3'))
    world.activate()
    world.next.kubernetes = { ...world.next.kubernetes, version: '1.34.4' }
    await expect(rollBack(world, 1, true)).rejects.toMatchObject({
      code: 'PreflightFailed',
      details: { problems: [{ code: 'VersionSkew' }] },
    })
  })
})

describe('a definition that declares a secret as open', () => {
  const password = ({ revisions }: ChangingCluster) =>
    revisions.newest()?.posted.spec?.profileVariables?.find(({ name }) => name === 'password')?.value

  it('does not show the value that was masked, also after further changes and in a rollback', async () => {
    const world = createChangingCluster()
    world.found.isSecret = false
    await world.write((document) => ({ ...withReplicas('3')(document), metadata: { labels: { site: 'b' } } }))
    expect(password(world)).toBe('********')
    expect(world.revisions.newest()).toMatchObject({ generation: 2, sensitive: [secret] })
    world.activate()
    await world.write(withReplicas('4'))
    expect(password(world)).toBe('********')
    world.activate()
    const open = (value: string) => (document: ClusterConfiguration) =>
      spec(document, { profileVariables: [{ name: 'password', value }] })
    await world.write(open(secret))
    expect(password(world)).toBe('********')
    await world.write(open('another'))
    expect(password(world)).toBe('another')
    world.activate()
    await rollBack(world, 2)
    expect(password(world)).toBe('********')
    expect(JSON.stringify([world.events, world.revisions.list().map(({ posted }) => posted)])).not.toContain(
      secret,
    )
  })
})

describe('the upkeep', () => {
  it('the last ten revisions are kept, and the active and the good one; folders of others go', async () => {
    const world = createChangingCluster()
    for (let value = 3; value <= 16; value += 1) await world.write(withReplicas(String(value)))
    mkdirSync(join(world.store.current()!.folder, '..', '99'))
    await world.upkeep.run()
    const kept = [1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    expect(world.revisions.list().map(({ generation }) => generation)).toEqual([...kept].reverse())
    expect(world.generations()).toEqual(kept.map(String))
    expect(world.done.at(-1)).toBe('renew sha256:1,sha256:2')
  })

  it('many writes that came to nothing leave a good revision to which the present one can go back', async () => {
    const world = createChangingCluster()
    for (let value = 3; value <= 16; value += 1) await world.write(withReplicas(String(value)))
    world.activate()
    await world.upkeep.run()
    expect(world.store.current()).toMatchObject({ generation: 15, goodGeneration: 15 })
    expect(world.generations()[0]).toBe('1')
    await rollBack(world)
    expect(world.revisions.newest()?.plain).toEqual(posted)
    world.activate()
    await world.upkeep.run()
    expect(world.generations()).not.toContain('1')
  })
})

it('settings are replaced as a whole', async () => {
  const edited = await withSettings({ ntpServers: ['ntp.example'] })(
    {
      spec: {
        archiveUploadPath: '/definitions/1',
        cloudConfig: { spec: { clusterConfig: { sshKeys: ['old'], staticIp: true } } },
      },
    },
    {} as never,
  )
  expect(edited.spec).toEqual({
    archiveUploadPath: '/definitions/1',
    cloudConfig: { spec: { clusterConfig: { ntpServers: ['ntp.example'], sshKeys: [], staticIp: true } } },
  })
})
