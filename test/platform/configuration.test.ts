import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { ConfigInvalid } from '../../src/config/problem.ts'
import { configuration } from '../../src/edgeplatformd/declarations.ts'

const folder = mkdtempSync(join(tmpdir(), 'platform-configuration-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What a configuration is refused with. */
async function problemsOf(from: { file?: string; environment?: Record<string, string>; flags?: string[] }) {
  const defaultFile = join(folder, 'config.yaml')
  writeFileSync(defaultFile, from.file ?? '')
  const commandLine = configuration.parseCommandLine(from.flags ?? [])
  const loading = configuration.loadConfig({ commandLine, environment: from.environment ?? {}, defaultFile })
  return loading.then(
    () => [],
    (error: unknown) => (error as ConfigInvalid).problems.map(({ message }) => message),
  )
}

const why =
  'a table has the rates of paths, of which api.rateLimits.paths changes some; all other paths have api.rateLimits.requestsPerSecond and burst'

it('the rates of hosts are unknown, wherever they are set, and the message says what there is', async () => {
  expect(configuration.defaultConfigFile()).not.toMatch(/login:|blobs:|resources:/)
  const file = 'api: {rateLimits: {burst: 9, login: {burst: 9}, blobs: {burst: 9}, resources: [events=50/5]}}'
  expect(await problemsOf({ file })).toEqual(
    ['login', 'blobs', 'resources'].map((name) => `unknown key api.rateLimits.${name}; ${why}`),
  )
  const environment = {
    EDGEPLATFORMD_API_RATE_LIMITS_RESOURCES: 'events=50/5',
    EDGEPLATFORMD_API_RATE_LIMITS_LOGIN_BURST: '9',
  }
  expect(await problemsOf({ environment })).toEqual(Array(2).fill(`unknown variable; ${why}`))
  const flags = ['--api.rateLimits.blobs.requestsPerSecond=9', '--api.rateLimits.resources=events=50/5']
  expect(await problemsOf({ flags })).toEqual(Array(2).fill(`unknown flag; ${why}`))
})

it('other keys that there are not are answered with the nearest one, as before', async () => {
  expect(await problemsOf({ file: 'api: {rateLimits: {brust: 9}}' })).toEqual([
    'unknown key api.rateLimits.brust; did you mean api.rateLimits.burst?',
  ])
  expect(await problemsOf({ flags: ['--api.rateLimits.loginBurst=9'] })).not.toEqual([`unknown flag; ${why}`])
})
