import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { clientOf, networkPath as path, type NetworkClient } from './host/network-client.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import './host/global-setup.ts'

const addressed = (last: number) => ({
  type: 'static',
  ip: `192.0.2.${last}`,
  subnet: '255.255.255.0',
  gateway: '192.0.2.1',
})

describe('the network of a host is changed over the API', () => {
  let network: NetworkHost
  let host: Edgehostd
  let client: NetworkClient
  const ask: NetworkClient['ask'] = (...args) => client.ask(...args)
  const change = (uid: string, address = '192.0.2.10') => client.change(uid, address)
  const isState = (uid: string, state: string, address = '192.0.2.10') => client.isState(uid, state, address)
  /** Root's own socket. */
  const local = async (...args: string[]) => host.run(['edgehostctl', ...args])
  async function begin(last: number, window: number, address = '192.0.2.10') {
    const target = `${path}/interfaces/host0/config?window=${window}`
    const reply = await ask(address, 'PUT', target, addressed(last))
    expect(reply, JSON.stringify(reply)).toMatchObject({ status: 202 })
    return reply.json.uid
  }

  beforeAll(async () => {
    network = await bootNetworkHost('networkd')
    host = asEdgehostd(network)
    await host.write(
      '/etc/edgehostd/config.d/test.yaml',
      'api: {rateLimits: {enabled: false}}\nnetwork: {shortestWindowSeconds: 5}\n',
    )
    await installPackage(host, await readFile(inject('deb')))
    await host.addUser({ name: 'olga', password: 'a-long-Passw0rd', groups: ['sudo'] })
    client = clientOf(network)
    await client.login('192.0.2.10', 'olga', 'a-long-Passw0rd')
    await network.addForeign()
  })
  afterAll(() => network.unplug())

  it('a dry run says what speaks against a change, and changes nothing', async () => {
    const target = `${path}/interfaces/host0/config?dryRun=true`
    const bad = await ask('192.0.2.10', 'PUT', target, { ...addressed(11), gateway: '198.51.100.1' })
    expect(bad).toMatchObject({ status: 200, json: { problems: [{ field: 'gateway' }] } })
    const good = await ask('192.0.2.10', 'PUT', target, addressed(11))
    expect(good).toMatchObject({
      status: 200,
      json: { problems: [], summary: expect.stringContaining('192.0.2.11') },
    })
    expect((await ask('192.0.2.10', 'GET', `${path}/changes`)).json).toEqual({ items: [] })
  })

  it('a window below what the configuration allows is refused', async () => {
    const reply = await ask('192.0.2.10', 'PUT', `${path}/interfaces/host0/config?window=4`, addressed(11))
    expect(reply).toMatchObject({ status: 400 })
  })

  it('a change is confirmed on a new connection to the new address, and stays over a boot of the daemon', async () => {
    const uid = await begin(11, 30)
    await isState(uid, 'trial', '192.0.2.11')
    expect(await change(uid, '192.0.2.11')).toMatchObject({ needsNewWay: true, requestedBy: 'olga' })
    const second = await ask('192.0.2.11', 'PUT', `${path}/interfaces/host0/config`, addressed(12))
    expect(second).toMatchObject({ status: 429, json: { code: 'NetworkChangeOpen', details: { uid } } })
    // The virtual address answers too, and is an address of the host.
    const confirmed = await ask('192.0.2.11', 'POST', `${path}/changes/${uid}/actions/confirm`)
    expect(confirmed).toMatchObject({ status: 200, json: { state: 'confirmed' } })
    expect(await host.read('/usr/local/lib/systemd/network/05-edgehostd-host0.network')).toContain(
      '192.0.2.11/24',
    )
    expect(await ask('192.0.2.11', 'POST', `${path}/changes/${uid}/actions/revert`)).toMatchObject({
      status: 409,
      json: { code: 'NetworkChangeDecided' },
    })
    expect(await network.snapshot()).toContain('192.0.2.200/32')
  })

  it('root on the host takes a change back, and lists the changes', async () => {
    const uid = await begin(10, 30, '192.0.2.11')
    await isState(uid, 'trial')
    expect(await local('network', 'revert', uid)).toMatchObject({ exitCode: 0 })
    await isState(uid, 'reverted', '192.0.2.11')
    expect((await local('network', 'changes')).stdout).toContain('reverted (asked)')
    expect(await local('network', 'confirm', uid)).toMatchObject({ exitCode: 1 })
  })

  it('a request on a connection of before the change does not confirm it', async () => {
    // The virtual address is there before and in the trial, so that a connection to it goes on.
    const { stdout, stderr } = await network.neighbour(
      ...[process.execPath, '--input-type=module', '--eval', oldConnection],
      ...[client.token(), JSON.stringify(addressed(10))],
    )
    expect(stdout.trim(), stderr).toBe('200 202 trial 409 NetworkConfirmUnproven')
    const { items } = (await ask('192.0.2.200', 'GET', `${path}/changes`)).json
    await isState(items[0]!.uid, 'reverted', '192.0.2.11')
  })

  it('a change whose gateway does not answer is taken back at once, and says why', async () => {
    const target = `${path}/interfaces/host0/config?window=60`
    const reply = await ask('192.0.2.11', 'PUT', target, { ...addressed(11), gateway: '192.0.2.77' })
    expect(reply).toMatchObject({ status: 202 })
    await isState(reply.json.uid, 'reverted', '192.0.2.11')
    expect(await change(reply.json.uid, '192.0.2.11')).toMatchObject({
      reason: 'failed',
      message: expect.stringContaining('192.0.2.77') as string,
    })
  })

  it.each(['before', 'in', 'after'] as const)(
    'a daemon that is killed %s the apply changes nothing of it',
    async (when) => {
      const before = await network.snapshot()
      const kill = () => host.sh('kill -KILL "$(systemctl show --property=MainPID --value edgehostd)"')
      const beganAt = Date.now()
      // The program waits before it has changed anything, and goes on without the daemon.
      if (when === 'before') await host.write('/usr/local/sbin/flock', waiting, 0o755)
      const asked = ask('192.0.2.11', 'PUT', `${path}/interfaces/host0/config?window=8`, addressed(10))
      const trial = '/run/edgehostd-network/trial'
      if (when === 'before') await eventually(() => host.sh('ls /run/test-waits'))
      if (when === 'in') await eventually(() => host.sh(`ls ${trial}/armed`))
      if (when === 'after') await eventually(() => host.sh(`ls ${trial}/applied`), 30_000)
      await kill()
      if (when === 'before') await host.sh('rm /usr/local/sbin/flock; : > /run/test-goes')
      await asked
      await eventually(async () => {
        const { items } = (await ask('192.0.2.11', 'GET', `${path}/changes`)).json
        // Killed before the program had begun, the next daemon may be faster than the program, and takes the change away.
        const reason = when === 'before' ? expect.stringMatching(/^(deadline|failed)$/) : 'deadline'
        expect(items[0]).toMatchObject({ state: 'reverted', reason })
        expect(Date.parse(items[0]!.creationTimestamp)).toBeGreaterThan(beganAt)
      }, 30_000)
      await eventually(async () => expect(await network.snapshot()).toBe(before), 20_000)
    },
  )
})

const waiting =
  '#!/bin/sh\n: > /run/test-waits\nwhile [ ! -e /run/test-goes ]; do sleep 0.1; done\nexec /usr/bin/flock "$@"\n'

/** Sends every request on one connection. */
const oldConnection = `
import { Agent, request } from 'node:https'
const [token, body] = process.argv.slice(1)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const connections = new Set()
const ask = (method, path, sent = '') => new Promise((resolve, reject) => {
  const headers = { authorization: token, ...(sent && { 'content-type': 'application/json' }) }
  const options = { host: '192.0.2.200', port: 5080, method, path: '/v1/edge-mgmt/network' + path, agent, headers, rejectUnauthorized: false }
  const asked = request(options, (reply) => {
    connections.add(reply.socket.localPort)
    let text = ''
    reply.on('data', (chunk) => (text += chunk))
    reply.on('end', () => resolve({ status: reply.statusCode, json: JSON.parse(text) }))
  })
  asked.on('error', reject)
  asked.end(sent)
})
const seen = [(await ask('GET', '/changes')).status]
const begun = await ask('PUT', '/interfaces/host0/config?window=10', body)
seen.push(begun.status)
let change
do {
  change = (await ask('GET', '/changes/' + begun.json.uid)).json
} while (change.state === 'applying')
seen.push(change.state)
const confirmed = await ask('POST', '/changes/' + begun.json.uid + '/actions/confirm')
seen.push(confirmed.status, confirmed.json.code)
console.log(connections.size === 1 ? seen.join(' ') : 'several connections')
process.exit(0)
`
