import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { ConfigInvalid } from '../../../src/config/problem.ts'
import { configuration } from '../../../src/edgeplatformd/declarations.ts'
import { makeMaterial } from '../../support/https-server.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

const folder = mkdtempSync(join(tmpdir(), 'cloud-configuration-'))
afterAll(() => rmSync(folder, { recursive: true }))
const caFile = join(folder, 'ca.pem')
const { cert } = await makeMaterial()
writeFileSync(caFile, cert)
/** A file with this text. */
function fileOf(text: string): string {
  const file = join(folder, `${randomUUID()}.pem`)
  writeFileSync(file, text)
  return file
}
const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

/** What a check of the configuration finds. */
async function problemsOf(vendor: Readonly<Record<string, string>>) {
  const flags = Object.entries(vendor).map(([name, value]) => `--clouds.vendor.${name}=${value}`)
  return configuration
    .loadConfig({
      ...{ commandLine: configuration.parseCommandLine(flags), environment: {} },
      ...{ defaultFile: '/nowhere/config.yaml', onUnseen: () => undefined },
    })
    .then(
      ({ config }) => config.clouds.vendor,
      (error: unknown) => (error as ConfigInvalid).problems.map(({ message }) => message),
    )
}
const authUrl = 'https://keystone.plant.example:5000/v3'

describe('the configuration of a cloud', () => {
  it('is empty by default, and complete with the address of Keystone', async () => {
    expect(await problemsOf({})).toEqual({ interface: 'public' })
    expect(await problemsOf({ authUrl, caFile, region: 'One', interface: 'internal' })).toEqual({
      ...{ authUrl, caFile, region: 'One', interface: 'internal' },
    })
  })

  it.each<[Readonly<Record<string, string>>, string]>([
    [{ authUrl: 'http://keystone.plant.example' }, '; it must be an https:// URL'],
    [{ authUrl: 'https://user:key@keystone.plant.example' }, '; it must be an https:// URL'],
    [{ authUrl: 'https://a:99999' }, 'clouds.vendor.authUrl, https://a:99999, is not a URL'],
    [{ authUrl, interface: 'other' }, 'clouds.vendor.interface'],
    [{ authUrl, caFile: '/nowhere/ca.pem' }, 'clouds.vendor.caFile, /nowhere/ca.pem, cannot be read'],
    [{ authUrl, caFile: fileOf('no certificate') }, 'cannot be used: it has no certificate in PEM'],
    [{ authUrl, caFile: fileOf(cert + damaged) }, 'cannot be used: certificate 2 of 2 in it is damaged'],
    [
      { authUrl, caFile: fileOf(`-----BEGIN CERTIFICATE-----\nxx\n${cert}`) },
      '2 certificates begin in it, and 1 of them are whole',
    ],
    [{ caFile }, 'clouds.vendor.caFile has no effect without clouds.vendor.authUrl'],
    [{ region: 'One' }, 'clouds.vendor.region has no effect without clouds.vendor.authUrl'],
  ])('%j is refused', async (vendor, problem) => {
    expect(await problemsOf(vendor)).toEqual([expect.stringContaining(problem)])
  })

  it('a file of authorities that cannot be read ends a start, and the message names the key', async () => {
    const flags = [`--clouds.vendor.authUrl=${authUrl}`, '--clouds.vendor.caFile=/nowhere/ca.pem']
    await expect(createTestPlatform({ flags })).rejects.toThrow(
      'clouds.vendor.caFile, /nowhere/ca.pem, cannot be read',
    )
  })
})
