import { expect, it, onTestFinished } from 'vitest'
import { createConfiguration, type ConfigurationOptions } from '../../../src/configuration/configuration.ts'
import type { Placement } from '../../../src/configuration/placement.ts'
import { openConfigurationStore } from '../../../src/configuration/store.ts'
import { createSeal } from '../../../src/secrets/seal.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'
import { selfSignedCertificate } from '../../support/authority-certificates.ts'

const key = Buffer.alloc(32, 7)
const proxy = 'http://edge:canary@proxy.example:3128'

async function start(options: Partial<ConfigurationOptions> = {}) {
  const { log } = captureLog()
  const database = openDatabase(':memory:', log)
  onTestFinished(() => database.close())
  const placements: Placement[] = []
  let time = Date.now()
  const world = {
    failure: undefined as string | undefined,
    active: ['kubelet.service'] as readonly string[],
    busy: [] as { reason: string; message: string }[],
    ranges: { networks: [] as string[], addresses: [] as string[] },
    changes: 0,
  }
  const open = () =>
    createConfiguration({
      store: openConfigurationStore(database, createSeal(key), key),
      place: async (placement) => {
        placements.push(placement)
        if (world.failure !== undefined) throw new Error(world.failure)
        return world.active
      },
      activeUnits: async () => world.active,
      canTrust: async () => true,
      addresses: () => ['192.0.2.7/24'],
      cluster: { ranges: async () => world.ranges, busy: () => world.busy },
      onChange: () => (world.changes += 1),
      record: () => undefined,
      clock: { now: () => time, monotonic: () => time },
      log,
      ...options,
    })
  return { configuration: open(), open, placements, world, database, pass: (ms: number) => (time += ms) }
}

it('a change is in progress until it is put in place, and is then what the calls of the daemon use', async () => {
  const { configuration, placements, world } = await start()
  expect(await configuration.status()).toEqual({ state: 'Not Configured' })
  await configuration.tick()
  expect(placements).toEqual([])
  const { uid, changes } = await configuration.put({ httpsProxy: proxy, noProxy: 'a.example' })
  expect(changes.join()).not.toContain('canary')
  expect(world.changes).toBe(1)
  expect(await configuration.status()).toMatchObject({ state: 'In Progress', uid })
  expect(configuration.way.proxyFor('https://b.example')).toBe(proxy)
  await configuration.tick()
  expect(placements).toHaveLength(1)
  expect(placements[0]?.environment).toContain(`HTTPS_PROXY="${proxy}"`)
  expect(await configuration.status()).toMatchObject({ state: 'Configured', uid })
  await configuration.tick()
  expect(placements).toHaveLength(1)
  expect(configuration.way.proxyFor('https://a.example')).toBeUndefined()
  expect(configuration.way.proxyFor('https://192.0.2.9')).toBeUndefined()
  expect(configuration.way.proxyFor('http://b.example')).toBeUndefined()
})

it('the row has no password that could be read', async () => {
  const { configuration, database } = await start()
  await configuration.put({ httpsProxy: proxy })
  await configuration.tick()
  const row = JSON.stringify(
    database.sql.prepare('SELECT * FROM host_configuration').get(),
    (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value),
  )
  expect(row).not.toContain('canary')
})

it('a daemon that was killed before it was in place does it at its next start', async () => {
  const { configuration, open, placements } = await start()
  await configuration.put({ httpsProxy: proxy })
  const next = open()
  await next.tick()
  expect(placements).toHaveLength(1)
  expect((await next.status()).state).toBe('Configured')
})

it('a failure is shown, tried again later, and forgotten with the next change', async () => {
  const { configuration, placements, world, pass } = await start()
  world.failure = 'update-ca-certificates ended with 1'
  await configuration.put({ httpsProxy: proxy })
  await configuration.tick()
  expect(await configuration.status()).toMatchObject({ state: 'Failed', errorMessage: world.failure })
  expect(configuration.attention()).toMatchObject([{ code: 'ConfigurationFailed' }])
  await configuration.tick()
  expect(placements).toHaveLength(1)
  pass(30_000)
  world.failure = undefined
  await configuration.tick()
  expect((await configuration.status()).state).toBe('Configured')
  expect(configuration.attention()).toEqual([])
})

it('a change that comes while another one is put in place is not lost', async () => {
  const { placements, world, open } = await start({
    place: async (placement) => {
      placements.push(placement)
      if (placements.length === 1) await configuration.put({ httpsProxy: 'http://second.example:1' })
      return world.active
    },
  })
  const configuration = open()
  await configuration.put({ httpsProxy: 'http://first.example:1' })
  await configuration.tick()
  expect((await configuration.status()).state).toBe('In Progress')
  await configuration.tick()
  expect((await configuration.status()).state).toBe('Configured')
  expect(placements.map(({ environment }) => /\w+\.example/.exec(environment)?.[0])).toEqual([
    'first.example',
    'second.example',
  ])
  expect(placements[1]?.revision).toBeGreaterThan(placements[0]?.revision ?? Infinity)
})

it('units that run in a step of the cluster are not restarted before its end', async () => {
  const { configuration, placements, world } = await start()
  world.busy = [{ reason: 'ClusterStep', message: 'a step of the cluster: upgrade' }]
  await configuration.put({ httpsProxy: proxy })
  await configuration.tick()
  expect(placements).toEqual([])
  expect(await configuration.status()).toMatchObject({
    state: 'In Progress',
    waitsFor: 'a step of the cluster: upgrade',
  })
  world.active = []
  await configuration.tick()
  expect(placements).toHaveLength(1)
})

it('the networks of a cluster that comes later need no proxy, and with none nothing is done', async () => {
  const { configuration, placements, world } = await start()
  await configuration.put({ httpsProxy: proxy })
  await configuration.tick()
  world.ranges = { networks: ['10.244.0.0/16'], addresses: ['192.0.2.7', '198.51.100.4'] }
  await configuration.tick()
  expect(placements).toHaveLength(2)
  expect(placements[1]?.environment).toMatch(/NO_PROXY="[^"]*10\.244\.0\.0\/16,198\.51\.100\.4/)
  await configuration.put({})
  await configuration.tick()
  expect(placements).toHaveLength(3)
  expect(placements[2]).toMatchObject({ environment: '', certificates: [] })
  expect((await configuration.status()).state).toBe('Not Configured')
  world.ranges = { networks: ['10.245.0.0/16'], addresses: [] }
  await configuration.tick()
  expect(placements).toHaveLength(3)
})

it('a dry run says what differs and what restarts, and changes nothing', async () => {
  const { configuration, placements } = await start()
  const { cert } = selfSignedCertificate('authority.example', true)
  const body = { httpsProxy: proxy, caCerts: [Buffer.from(cert).toString('base64')] }
  expect(await configuration.plan(body)).toMatchObject({
    changes: ['httpsProxy: none -> http://edge:********@proxy.example:3128', 'caCerts: 1 added'],
    restarts: ['kubelet.service'],
  })
  expect(await configuration.plan({})).toEqual({ changes: [], restarts: [], noProxy: [] })
  await configuration.tick()
  expect(placements).toEqual([])
  expect(configuration.show()).toEqual({})
  await configuration.put(body)
  await configuration.tick()
  expect(await configuration.plan(body)).toMatchObject({ changes: [], restarts: [] })
  expect(configuration.way.authorities()).toHaveLength(1)
})
