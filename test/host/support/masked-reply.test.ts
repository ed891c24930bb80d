import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { supportSources } from '../../../src/edgehostd/declarations.ts'
import type { Inventory } from '../../../src/inventory/schemas.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { listSources } from '../../../src/support/sources.ts'
import { listen } from '../../support/daemon-listener.ts'

const rack = readFileSync(join(import.meta.dirname, '../../fixtures/inventory/rack-server.json'), 'utf8')

it('the inventory is in the archive without a serial number or an asset tag', async () => {
  const socketPath = await listen((request, response) => {
    response.writeHead(request.url === '/v1/edge-mgmt/edgehosts/current/inventory' ? 200 : 404).end(rack)
  })
  const source = listSources({
    ...{ runner: createRunner(), socketPath, replies: supportSources },
    ...{ explainConfig: async () => '', stateDirectory: '/nowhere', version: '1', sensitive: undefined },
  }).find(({ name }) => name === 'inventory.json')
  const text = (await source?.read()) ?? ''
  const inventory = JSON.parse(text) as Inventory
  expect(inventory.system).toMatchObject({ model: 'RackPower R740', serial: '********' })
  expect(inventory.disks.map(({ serial }) => serial)).toEqual(Array(4).fill('********'))
  const secret = [...rack.matchAll(/"(?:serial|assetTag)": "(.+?)"/g)].map(([, value]) => value!)
  expect(secret.length).toBeGreaterThan(7)
  for (const each of secret) expect(text).not.toContain(each)
})
