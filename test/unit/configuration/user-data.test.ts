import { expect, it, onTestFinished } from 'vitest'
import { createUserData } from '../../../src/configuration/user-data.ts'
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
    database,
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
  return { world, userData }
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
