import { expect, it } from 'vitest'
import { checkSettings } from '../../../src/uplink/check-settings.ts'

const findings = (values: Readonly<Record<string, unknown>>) =>
  checkSettings({
    value: (path) => values[path],
    stateDirectory: '/var/lib/edgehostd',
    onUnseen: () => undefined,
  })

const connected = { 'host.mode': 'connected', 'platform.url': 'https://platform.example' }

it('accepts a connected host with a URL, and any airgapped host', async () => {
  expect(await findings(connected)).toEqual([])
  expect(await findings({ 'host.mode': 'airgap', 'platform.url': 'https://a:99999' })).toEqual([])
})

it.each([
  ['platform.url', 'https://platform.example:99999'],
  ['platform.url', 'https://[::1'],
  ['platform.proxy', 'http://proxy.example:port'],
])('names %s where it is %s', async (path, value) => {
  expect(await findings({ ...connected, [path]: value })).toEqual([
    { path, message: `${path}, ${value}, is not a URL; a port is a number up to 65535` },
  ])
})

it('names a URL that is missing', async () => {
  expect(await findings({ 'host.mode': 'connected' })).toMatchObject([{ path: 'platform.url' }])
})
