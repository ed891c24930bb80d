import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { CloudInit, UserData } from '../../src/configuration/schemas.ts'
import { bootPlant, platformName, platformUrl, type Plant, type PlantHost } from './host/plant.ts'
import { output } from './host/process.ts'

// A host is linked to a real platform by its user data: the authority of the platform comes with it.

const path = '/v1/edge-mgmt/edgehosts/current/userdata'
let plant: Plant
let host: PlantHost
let authority: string

beforeAll(async () => {
  plant = await bootPlant({ hosts: ['machine'] })
  host = plant.hosts[0]!
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-plant-'))
  try {
    await output('sh', [
      '-euc',
      `cd "$1"
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=authority of the plant' -keyout ca.key -out ca.crt \\
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2> /dev/null
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout own.key -out own.csr 2> /dev/null
      printf 'subjectAltName=DNS:%s' "$2" > own.ext
      openssl x509 -req -in own.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 20 -extfile own.ext -out own.crt 2> /dev/null`,
      ...['sh', folder, platformName],
    ])
    authority = (await readFile(join(folder, 'ca.crt'))).toString('base64')
    for (const name of ['own.crt', 'own.key'])
      await plant.platform.write(`/etc/edgeplatform/${name}`, await readFile(join(folder, name)), 0o600)
  } finally {
    await rm(folder, { recursive: true })
  }
  // Its daemon is an account of its own.
  await plant.platform.sh(
    'chown --reference=/var/lib/edgeplatform/tls/key.pem /etc/edgeplatform/own.crt /etc/edgeplatform/own.key',
  )
  await plant.platform.write(
    '/etc/edgeplatform/config.d/20-tls.yaml',
    'api: {tls: {certificateFile: /etc/edgeplatform/own.crt, keyFile: /etc/edgeplatform/own.key}}\n',
  )
  await plant.platform.output(['systemctl', 'restart', 'edgeplatformd'])
  // The name of the host was set by hand; a start reads it at once.
  await host.output(['systemctl', 'restart', 'edgehostd'])
}, 300_000)
afterAll(() => plant.unplug())

const put = (body: CloudInit) => host.asRoot('PUT', path, body)
const show = async () => JSON.parse((await host.asRoot('GET', path)).text) as UserData
const dropIns = () => host.sh('ls /etc/edgehostd/config.d')

it('an authority that nobody knows, and a token that is none, are refused with their paths; nothing is done', async () => {
  const before = { shown: await show(), dropIns: await dropIns() }
  const v1Management = { type: 'central', platformEndpoint: platformUrl, edgeHostToken: 'canary' } as const
  const unknown = await put({ hostName: 'line-7', v1Management })
  expect(unknown, unknown.text).toMatchObject({ status: 400 })
  expect(unknown.text).toMatch(/v1Management\.platformEndpoint cannot be used: .*who issued the certificate/)
  const refused = await put({ hostName: 'line-7', network: { caCerts: [authority] }, v1Management })
  expect(refused, refused.text).toMatchObject({ status: 400 })
  expect(refused.text).toContain('v1Management.edgeHostToken cannot be used: ')
  expect(unknown.text + refused.text).not.toContain('canary')
  expect(before.shown.v1Management).toEqual({ type: 'local' })
  expect({ shown: await show(), dropIns: await dropIns() }).toEqual(before)
})

it('a host is linked with the authority that comes along; the reply comes, and then edgehostd starts anew', async () => {
  const pid = await host.mainPid()
  const linked = await put({
    hostName: 'line-7',
    tags: { hall: 'B' },
    network: { caCerts: [authority] },
    v1Management: { type: 'central', platformEndpoint: platformUrl, edgeHostToken: await plant.makeToken() },
  })
  expect(linked, linked.text).toMatchObject({ status: 204 })
  await host.untilLink(({ isConnected }) => isConnected, 60_000)
  expect(await host.mainPid()).not.toBe(pid)
  expect(await show()).toMatchObject({
    hostName: 'line-7',
    tags: { hall: 'B' },
    network: { caCerts: [authority] },
    v1Management: { type: 'central', platformEndpoint: platformUrl },
  })
  expect(await host.sh('ls /var/lib/edgehostd/platform')).not.toContain('registration-token')
})

it('what GET shows, sent back, starts nothing anew; another platform and the management here are refused', async () => {
  const pid = await host.mainPid()
  const shown = await show()
  const same = await put({ v1Management: shown.v1Management, network: shown.network })
  expect(same, same.text).toMatchObject({ status: 204 })
  for (const v1Management of [
    { type: 'central', platformEndpoint: 'https://other.plant.example' },
    { type: 'local' },
  ] as const) {
    const refused = await put({ v1Management })
    expect(refused, refused.text).toMatchObject({ status: 400 })
    expect(refused.text).toContain('edgehostctl platform disconnect')
  }
  expect(await host.mainPid()).toBe(pid)
})

it('platform connect checks by the authority that the host has been given', async () => {
  await host.output(['edgehostctl', 'platform', 'disconnect', '--yes'])
  const { exitCode, stdout, stderr } = await host.connect()
  expect(exitCode, stderr).toBe(0)
  expect(stdout).toMatch(/TLS: the certificate is accepted/)
  await host.untilLink(({ isConnected }) => isConnected)
})
