import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { createUserData } from '../../../src/configuration/user-data.ts'
import { openUserDataStore } from '../../../src/configuration/user-data-store.ts'
import { createSeal } from '../../../src/secrets/seal.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'

const how = {
  requestedBy: 'alice',
  cameBy: { isLocal: true, hostAddress: undefined, clientAddress: undefined },
}

function start() {
  const database = openDatabase(':memory:', captureLog().log)
  onTestFinished(() => database.close())
  const world = { name: 'edge-1', begun: [] as string[], hasCluster: false }
  const userData = createUserData({
    store: openUserDataStore(database, createSeal(randomBytes(32))),
    configuration: {
      show: () => ({}),
      plan: async () => ({ changes: [], restarts: [], noProxy: [] }),
      put: async () => ({ uid: '1', changes: [] }),
    },
    links: {
      show: async () => ({}),
      open: () => undefined,
      judge: async (interfaces) => async () => {
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
    platform: () => ({ type: 'local' }),
    clock: { now: () => Date.now() },
  })
  return { world, userData, database }
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

it('links that change are tried together', async () => {
  const { world, userData } = start()
  const interfaces = { eth0: { type: 'dhcp' }, eth1: { type: 'dhcp' } } as const
  const { change } = await userData.apply({ network: { interfaces } }, true, how)
  expect(change).toBe('one trial')
  expect(world.begun).toEqual(['eth0', 'eth1'])
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
