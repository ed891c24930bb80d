import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { CloudInit, UserData } from '../../src/configuration/schemas.ts'
import { selfSignedCertificate } from '../support/authority-certificates.ts'
import { installDebian } from './host/debian-packages.ts'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import './host/global-setup.ts'

const path = '/v1/edge-mgmt/edgehosts/current/userdata'
const httpsProxy = 'http://edge:canary%200803@192.0.2.1:3128'
const shownProxy = 'http://edge:********@192.0.2.1:3128'
let network: NetworkHost
let host: Edgehostd
let authority: string
let token = ''
/** Of the host, now. */
let address = '192.0.2.10'

beforeAll(async () => {
  network = await bootNetworkHost('networkd')
  host = asEdgehostd(network)
  await host.write(
    '/etc/edgehostd/config.d/test.yaml',
    'api: {rateLimits: {enabled: false}}\nuserData: {stages: true}\n',
  )
  for (const name of ['openssl', 'ca-certificates']) await installDebian(host, name)
  await installPackage(host, await readFile(inject('deb')))
  await host.addUser({ name: 'olga', password: 'a-long-Passw0rd', groups: ['sudo'] })
  token = await logIn()
  authority = Buffer.from(selfSignedCertificate('authority.example', true).cert).toString('base64')
}, 300_000)
afterAll(() => network.unplug())

/** A request of the neighbour, on a connection of its own. */
async function ask(method: string, target: string, body?: CloudInit) {
  const { stdout, stderr } = await network.neighbour(
    ...['curl', '--silent', '--show-error', '--insecure', '--max-time', '120', '--request', method],
    ...['--header', `Authorization: ${token}`, '--write-out', '\n%header{location}\n%{http_code}'],
    ...(body === undefined ? [] : ['--json', JSON.stringify(body)]),
    `https://${address}:5080${target}`,
  )
  const [, text = stderr, location = '', status = '0'] = /^(.*)\n(.*)\n(\d+)$/s.exec(stdout) ?? []
  return { status: Number(status), text, location }
}
async function logIn(): Promise<string> {
  const { text } = await ask('POST', '/v1/users/default/login', {
    username: 'olga',
    password: 'a-long-Passw0rd',
  } as CloudInit)
  return (JSON.parse(text) as { Token: { Authorization: string } }).Token.Authorization
}
async function show(): Promise<UserData> {
  const { status, text } = await ask('GET', path)
  expect(status, text).toBe(200)
  return JSON.parse(text) as UserData
}
async function restart(how: 'restart' | 'kill' = 'restart'): Promise<void> {
  await host.output(
    how === 'restart'
      ? ['systemctl', 'restart', 'edgehostd']
      : ['systemctl', 'kill', '--signal=KILL', 'edgehostd'],
  )
  await eventually(show, 30_000)
}
const interfaces = {
  host0: { type: 'static', ipAddress: '192.0.2.11/24', gateway: '192.0.2.1' },
  eth2: { type: 'static', ipAddress: '203.0.113.11/24' },
} as const
const registryCredentials = {
  domain: 'registry.example:5000',
  username: 'edge',
  password: 'canary 0804',
}

it('all of it at once, with a restart of the daemon between every two steps', async () => {
  const body: CloudInit = {
    hostName: 'line-7',
    tags: { hall: { name: 'B' } },
    network: { httpsProxy, noProxy: '.plant.example', caCerts: [authority], interfaces: { ...interfaces } },
    registryCredentials,
  }
  const created = await ask('POST', path, body)
  expect(created, created.text).toMatchObject({ status: 201 })
  expect(created.location).toMatch(/^\/v1\/edge-mgmt\/network\/changes\/[0-9a-f-]{36}$/)
  address = '192.0.2.11'
  await restart()
  await eventually(async () => {
    expect((await show()).networkChange?.state).toBe('trial')
  }, 30_000)
  const tried = await show()
  expect(tried.networkChange?.summary).toBe(
    'host0: address 192.0.2.11/24, gateway 192.0.2.1; eth2: address 203.0.113.11/24',
  )
  await restart('kill')
  // On a new connection to the new address.
  const confirmed = await ask('POST', `${created.location}/actions/confirm`)
  expect(confirmed, confirmed.text).toMatchObject({ status: 200 })
  await restart()
  const now = await show()
  expect(now).toMatchObject({
    hostName: 'line-7',
    tags: { hall: { name: 'B' } },
    network: {
      httpsProxy: shownProxy,
      noProxy: '.plant.example',
      caCerts: [authority],
      interfaces: {
        host0: { type: 'static', ipAddress: '192.0.2.11/24', gateway: '192.0.2.1' },
        eth2: { type: 'static', ipAddress: '203.0.113.11/24' },
      },
    },
    registryCredentials: { ...registryCredentials, password: '********' },
    v1Management: { type: 'local' },
  })
  expect(now).not.toHaveProperty('networkChange')
  expect((await host.output(['hostname'])).trim()).toBe('line-7')
  expect(await network.reaches('192.0.2.11')).toBe(true)
  expect(await network.reaches('192.0.2.10')).toBe(false)
  await eventually(async () => {
    expect(await host.read('/etc/edgehostd/proxy.env')).toContain('HTTPS_PROXY="http://edge:canary')
    expect(await host.sh('ls /etc/ssl/certs | grep -c ^edgehostd- || true')).toBe('1\n')
  }, 60_000)
})

it('each section by itself, and what GET shows sent back, leave the others as they are', async () => {
  const before = await show()
  for (const body of [
    { tags: { hall: { name: 'C' } } },
    { hostName: 'line-8' },
    { registryCredentials: before.registryCredentials },
    { network: { ...before.network } },
  ] as CloudInit[]) {
    const reply = await ask('PUT', path, body)
    expect(reply, reply.text).toMatchObject({ status: 204, location: '' })
    await restart()
  }
  expect(await show()).toEqual({ ...before, hostName: 'line-8', tags: { hall: { name: 'C' } } })
})

it('interfaces that are taken back are as before, both of them', async () => {
  const reply = await ask('PUT', path, {
    network: {
      interfaces: {
        host0: { type: 'static', ipAddress: '192.0.2.12/24', gateway: '192.0.2.1' },
        eth2: { type: 'static', ipAddress: '203.0.113.12/24' },
      },
    },
  })
  expect(reply, reply.text).toMatchObject({ status: 204 })
  address = '192.0.2.12'
  await eventually(async () => expect((await show()).networkChange?.state).toBe('trial'), 30_000)
  const reverted = await ask('POST', `${reply.location}/actions/revert`)
  expect(reverted, reverted.text).toMatchObject({ status: 200 })
  address = '192.0.2.11'
  await eventually(async () => expect(await show()).not.toHaveProperty('networkChange'), 30_000)
  expect(await show()).toMatchObject({
    network: {
      interfaces: { host0: { ipAddress: '192.0.2.11/24' }, eth2: { ipAddress: '203.0.113.11/24' } },
    },
  })
})

it('stages run as root, once, and are a mask afterwards', async () => {
  const yaml = `stages:
  boot:
    - name: plant
      files:
        - {path: /etc/plant/line.conf, content: "line=canary 0805\\n", permissions: 0600}
      commands:
        - id -u >> /etc/plant/ran
`
  const reply = await ask('PUT', path, { stages: Buffer.from(yaml).toString('base64') })
  expect(reply, reply.text).toMatchObject({ status: 204 })
  await eventually(async () => expect((await show()).stagesStatus).toMatchObject({ state: 'done' }), 60_000)
  await restart()
  expect((await show()).stages).toBe('********')
  expect(await host.read('/etc/plant/ran')).toBe('0\n')
  expect(await host.output(['stat', '--format=%a %U', '/etc/plant/line.conf'])).toBe('600 root\n')
  const failing = Buffer.from('boot: [{commands: ["true", "exit 3"]}]').toString('base64')
  await ask('PUT', path, { stages: failing })
  await eventually(async () => {
    expect((await show()).stagesStatus).toMatchObject({
      state: 'failed',
      message: expect.stringContaining('stages.boot[0].commands[1] ended with 3') as string,
    })
  }, 60_000)
})

it('a platform that does not answer is refused with its path, and nothing is done', async () => {
  const before = await show()
  const reply = await ask('PUT', path, {
    hostName: 'line-9',
    network: { noProxy: '.other.example' },
    v1Management: { type: 'central', platformEndpoint: 'https://192.0.2.1:9', edgeHostToken: 'canary-0806' },
  })
  expect(reply, reply.text).toMatchObject({ status: 400 })
  expect(reply.text).toContain('v1Management.platformEndpoint cannot be used: ')
  expect(reply.text).not.toContain('canary')
  expect(await show()).toEqual(before)
  expect(await host.sh('ls /etc/edgehostd/config.d')).toBe('test.yaml\n')
})

it('no secret of it is in the journal or in what others may read', async () => {
  const seen = await host.sh(`
    journalctl --no-pager --output=cat
    edgehostctl audit list --limit 50 -o json
    runuser -u nobody -- sh -c 'cat /etc/edgehostd/* /etc/edgehostd/config.d/* 2> /dev/null; ps axww' || true
  `)
  expect(seen).toContain('userData')
  expect(seen).not.toMatch(/canary/)
})
