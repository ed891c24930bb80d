import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SystemEntry } from '../../../src/audit/own-entries.ts'
import type { StageStep } from '../../../src/configuration/stage-steps.ts'
import { createStagesRunner } from '../../../src/configuration/stages-runner.ts'
import { createUserData } from '../../../src/configuration/user-data.ts'
import { openUserDataStore } from '../../../src/configuration/user-data-store.ts'
import type { PresentLink } from '../../../src/configuration/platform-link.ts'
import { refusedField } from '../../../src/errors/refused-field.ts'
import type { CloudInit } from '../../../src/configuration/schemas.ts'
import { createSeal } from '../../../src/secrets/seal.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'

const how = {
  requestedBy: 'alice',
  cameBy: { isLocal: true, hostAddress: undefined, clientAddress: undefined },
}

const noProxies = { proxyFor: () => undefined, authorities: () => [] }

function start({ takesStages = true } = {}) {
  const database = openDatabase(':memory:', captureLog().log)
  onTestFinished(() => database.close())
  const world = {
    name: 'edge-1',
    begun: [] as string[],
    hasCluster: false,
    isRefused: false,
    onCheck: () => {},
    onBegin: () => {},
    linked: [] as string[],
    link: { type: 'local' } as PresentLink,
  }
  const store = openUserDataStore(database, createSeal(randomBytes(32)))
  const userData = createUserData({
    store,
    configuration: {
      show: () => ({}),
      plan: async () => ({ changes: [], restarts: [], noProxy: [] }),
      put: async () => ({ uid: '1', changes: [] }),
      way: noProxies,
      wayWith: async () => ({ ...noProxies, proxyFor: () => 'http://proxy.example' }),
    },
    links: {
      show: async () => ({}),
      open: () => undefined,
      judge: async (interfaces) => async () => {
        world.onBegin()
        world.begun.push(...Object.keys(interfaces))
        return 'one trial'
      },
    },
    hasCluster: () => world.hasCluster,
    hostName: () => world.name,
    host: {
      problemOfName: (name) => (name.includes('_') ? 'is no name of a host' : undefined),
      setName: async (name) => void (world.name = name),
    },
    platform: () => world.link,
    linker: {
      async check(wanted, way) {
        if (world.isRefused) throw refusedField('v1Management.edgeHostToken', 'cannot be used')
        world.onCheck()
        world.linked.push(`check ${wanted.url} by ${way.proxyFor(wanted.url) ?? 'no proxy'}`)
      },
      write: async ({ url }) => void world.linked.push(`write ${url}`),
    },
    takesStages,
    clock: { now: () => Date.now() },
  })
  return { world, userData, database, store }
}

it('another name is given to the host at once', async () => {
  const { world, userData } = start()
  await userData.apply({ hostName: 'line-7' }, true, how)
  expect(world.name).toBe('line-7')
  await expect(userData.apply({ hostName: 'line_7' }, false, how)).rejects.toThrow(
    'hostName "line_7" is no name',
  )
  expect(world.name).toBe('line-7')
})

it('links that change are tried together, and last: the reply has to leave before the address is another one', async () => {
  const { world, userData } = start()
  world.onBegin = () => expect(world.name).toBe('line-7')
  const interfaces = { eth0: { type: 'dhcp' }, eth1: { type: 'dhcp' } } as const
  const { change } = await userData.apply({ hostName: 'line-7', network: { interfaces } }, true, how)
  expect(change).toBe('one trial')
  expect(world.begun).toEqual(['eth0', 'eth1'])
})

it('of two that are created at once the second finds the first; a cluster that comes in the checks is found too', async () => {
  const { world, userData } = start()
  const both = await Promise.allSettled([
    userData.apply({ tags: { a: 1 } }, true, how),
    userData.apply({ tags: { b: 1 } }, true, how),
  ])
  expect(both).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'UserDataExists' } },
  ])
  expect((await userData.show()).tags).toEqual({ a: 1 })
  world.onCheck = () => {
    world.hasCluster = true
  }
  const v1Management = { type: 'central', platformEndpoint: 'https://platform.example' } as const
  await expect(userData.apply({ hostName: 'line-7', v1Management }, false, how)).rejects.toMatchObject({
    code: 'UserDataAfterCluster',
  })
  expect(world.name).toBe('edge-1')
})

it('a host with a cluster takes no user data', async () => {
  const { world, userData } = start()
  world.hasCluster = true
  await expect(userData.apply({ hostName: 'line-7' }, false, how)).rejects.toMatchObject({
    code: 'UserDataAfterCluster',
  })
  expect(world.name).toBe('edge-1')
})

it('credentials of a registry are sealed, masked, and kept by a mask and by a change of something else', async () => {
  const { userData, database } = start()
  const registryCredentials = { domain: 'registry.example:5000', username: 'edge', password: 'canary' }
  await userData.apply({ registryCredentials, tags: { hall: 'B' } }, true, how)
  const shown = {
    domain: 'registry.example:5000',
    insecure: false,
    username: 'edge',
    password: '********',
  }
  expect((await userData.show()).registryCredentials).toEqual(shown)
  const rows = JSON.stringify(database.sql.prepare('SELECT * FROM host_user_data').all())
  expect(rows).not.toContain('canary')
  await userData.apply({ hostName: 'line-7' }, false, how)
  expect(await userData.show()).toMatchObject({ registryCredentials: shown, tags: { hall: 'B' } })
  // What GET gives may be sent back.
  await userData.apply({ registryCredentials: { ...shown, insecure: true } }, false, how)
  expect((await userData.show()).registryCredentials).toMatchObject({ insecure: true, username: 'edge' })
  await userData.apply({ registryCredentials: {} }, false, how)
  expect((await userData.show()).registryCredentials).toBeUndefined()
})

const encoded = (yaml: string) => Buffer.from(yaml).toString('base64')
const stages = encoded('stages:\n  boot:\n    - name: canary\n      commands: [echo canary]\n')

describe('stages', () => {
  it('are refused with the key to set where the configuration does not take them', async () => {
    const { userData } = start({ takesStages: false })
    await expect(userData.apply({ stages }, true, how)).rejects.toMatchObject({
      message: expect.stringContaining('userData.stages: true') as string,
      details: { field: 'stages' },
    })
    await expect(userData.apply({ stages: '********' }, true, how)).rejects.toThrow('userData.stages: true')
    await userData.apply({ stages: '' }, true, how)
    expect(await userData.show()).not.toHaveProperty('stages')
  })

  it('run once, are shown as a mask, and run again only where they are sent again', async () => {
    const { userData, store, database } = start()
    const ran: (readonly StageStep[])[] = []
    const records: SystemEntry[] = []
    const runner = createStagesRunner({
      store,
      run: async (steps) => void ran.push(steps),
      record: (entry) => void records.push(entry),
      clock: { now: () => Date.now() },
      log: captureLog().log,
    })
    await userData.apply({ stages }, true, how)
    expect(await userData.show()).toMatchObject({ stages: '********', stagesStatus: { state: 'waiting' } })
    expect(JSON.stringify(database.sql.prepare('SELECT * FROM host_user_data').all())).not.toContain('canary')
    expect(runner.busy()).toHaveLength(1)
    await expect(userData.apply({ stages }, false, how)).rejects.toMatchObject({ code: 'StagesUnderWay' })
    await runner.tick()
    await runner.tick()
    expect(ran).toEqual([[{ path: 'stages.boot[0]', commands: ['echo canary'], files: [] }]])
    expect(await userData.show()).toMatchObject({ stages: '********', stagesStatus: { state: 'done' } })
    expect(records.map(({ outcome }) => outcome)).toEqual(['success'])
    await userData.apply({ stages: '********', tags: { a: 1 } }, false, how)
    await runner.tick()
    expect(ran).toHaveLength(1)
    await userData.apply({ stages }, false, how)
    await runner.tick()
    expect(ran).toHaveLength(2)
    expect(runner.busy()).toEqual([])
  })

  it('that fail, or that a daemon leaves behind, are not run again by themselves', async () => {
    const { userData, store } = start()
    let started = 0
    let fail: (error: Error) => void = () => undefined
    const create = () =>
      createStagesRunner({
        store,
        async run() {
          started += 1
          await new Promise((_, reject) => {
            fail = reject
          })
        },
        record: () => undefined,
        clock: { now: () => Date.now() },
        log: captureLog().log,
      })
    const runner = create()
    await userData.apply({ stages }, true, how)
    const turn = runner.tick()
    expect(await userData.show()).toMatchObject({ stagesStatus: { state: 'running' } })
    // What has begun is not kept.
    expect(store.current()?.steps).toBeUndefined()
    const next = create()
    next.resume()
    await next.tick()
    expect(started).toBe(1)
    expect(await userData.show()).toMatchObject({
      stagesStatus: { state: 'failed', message: expect.stringContaining('was ended') as string },
    })
    expect(next.attention()).toMatchObject([{ code: 'StagesFailed' }])
    fail(new Error('stages.boot[0].commands[0] ended with 1'))
    await turn
    expect(await userData.show()).toMatchObject({
      stagesStatus: { message: 'stages.boot[0].commands[0] ended with 1' },
    })
  })
})

describe('a link to a platform', () => {
  const v1Management = {
    type: 'central',
    platformEndpoint: 'https://platform.example',
    edgeHostToken: 'the-token',
  } as const

  it('is checked before anything is done, and written last', async () => {
    const { world, userData } = start()
    world.isRefused = true
    await expect(userData.apply({ hostName: 'line-7', v1Management }, true, how)).rejects.toThrow(
      'v1Management.edgeHostToken',
    )
    expect([world.name, world.linked]).toEqual(['edge-1', []])
    world.isRefused = false
    const { needsRestart } = await userData.apply({ hostName: 'line-7', v1Management }, true, how)
    expect(needsRestart).toBe(true)
    expect(world.linked).toEqual([
      'check https://platform.example by no proxy',
      'write https://platform.example',
    ])
    // The proxy that comes with it is the one by which it is checked.
    await userData.apply({ network: { httpsProxy: 'http://proxy.example' }, v1Management }, false, how)
    expect(world.linked[2]).toBe('check https://platform.example by http://proxy.example')
  })

  it('that is there already is left as it is, so that what GET shows can be sent back', async () => {
    const { world, userData } = start()
    world.link = { type: 'central', platformEndpoint: 'https://platform.example', projectName: 'plant' }
    const shown = (await userData.show()).v1Management
    expect(shown).toEqual(world.link)
    const { needsRestart } = await userData.apply({ v1Management: shown }, true, how)
    expect([needsRestart, world.linked]).toEqual([false, []])
    // Another token renews it.
    await userData.apply({ v1Management }, false, how)
    expect(world.linked).toHaveLength(2)
  })

  it.each([
    [{ type: 'local' }, 'central', 'v1Management.type cannot be applied here'],
    [
      { type: 'central', platformEndpoint: 'https://other.example' },
      'central',
      'v1Management.platformEndpoint is another one',
    ],
    [{ type: 'central', projectName: 'other' }, 'central', 'v1Management.projectName cannot be changed here'],
    [{ type: 'central' }, 'local', 'v1Management.platformEndpoint is missing'],
    [{ ...v1Management, insecure: true }, 'local', 'v1Management.insecure cannot be'],
    [
      { type: 'local', edgeHostToken: 'x' },
      'local',
      'v1Management.edgeHostToken is only for the type central',
    ],
    [{ ...v1Management, user: 'x' }, 'local', 'v1Management.user is not a field'],
  ] as const)('%j on a host of the type %s is refused', async (sent, type, reason) => {
    const { world, userData } = start()
    world.link =
      type === 'local'
        ? { type }
        : { type, platformEndpoint: 'https://platform.example', projectName: 'plant' }
    await expect(
      userData.apply({ v1Management: sent as object as CloudInit['v1Management'] & object }, true, how),
    ).rejects.toThrow(reason)
    expect(world.linked).toEqual([])
  })
})
