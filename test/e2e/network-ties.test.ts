import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { ResetPlan } from '../../src/power/schemas.ts'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { rootOf, type AskAsRoot } from './host/http.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import { bootPlant, type Plant, type PlantHost } from './host/plant.ts'
import { lowerFolder } from './host/roots.ts'
import './host/global-setup.ts'

const path = '/v1/edge-mgmt/network'
const actions = '/v1/edge-mgmt/edgehosts/current/actions'
const issueFile = '/run/issue.d/edgehostd.issue'
const kept = '/usr/local/lib/systemd/network/05-edgehostd-host0.network'

interface AnyReply {
  readonly uid: string
  readonly code: string
  readonly message: string
  readonly state: string
  readonly reason?: string
  readonly details: { readonly reasons: readonly { readonly reason: string; readonly uid?: string }[] }
}
type Ask = AskAsRoot<AnyReply>

const stateOf = async (ask: Ask, uid: string) => (await ask('GET', `${path}/changes/${uid}`)).json
const untilState = (ask: Ask, uid: string, state: string, timeoutMs = 40_000) =>
  eventually(async () => expect(await stateOf(ask, uid)).toMatchObject({ state }), timeoutMs)

describe('a host without a platform', () => {
  let network: NetworkHost
  let host: Edgehostd
  let ask: Ask
  const addressed = (last: number, more: object = {}) => ({
    ...{ type: 'static', ip: `192.0.2.${last}`, subnet: '255.255.255.0', gateway: '192.0.2.1' },
    ...more,
  })
  async function begin(body: object, query = 'window=60') {
    const reply = await ask('PUT', `${path}/interfaces/host0/config?${query}`, body)
    expect(reply.status, reply.text).toBe(202)
    return reply.json.uid
  }
  /** The console is written after the change of a state. */
  const onConsole = (text: RegExp) =>
    eventually(async () => expect(await host.read(issueFile)).toMatch(text), 20_000)

  beforeAll(async () => {
    network = await bootNetworkHost('networkd')
    host = asEdgehostd(network)
    ask = rootOf(() => network.leader)
    await host.write('/etc/edgehostd/config.d/test.yaml', 'network: {shortestWindowSeconds: 5}\n')
    await installPackage(host, await readFile(inject('deb')))
    await eventually(async () => expect((await ask('GET', `${path}/changes`)).status).toBe(200), 30_000)
  })
  afterAll(() => network.unplug())

  it('a reboot and a reset wait for an open change, which the console shows with address, deadline and command', async () => {
    const uid = await begin(addressed(11))
    await untilState(ask, uid, 'trial')
    await onConsole(/Network {4}tried until \S+, then taken back: .*192\.0\.2\.11/)
    await onConsole(/its links have now: https:\/\/192\.0\.2\.11:5080/)
    await onConsole(new RegExp(`keep it: edgehostctl network confirm ${uid}`))
    for (const [target, body] of [
      [`${actions}/reboot`, undefined],
      [`${actions}/reset`, { hostName: (await host.output(['hostname'])).trim() }],
    ] as const) {
      const { status, json } = await ask('POST', target, body)
      expect([status, json]).toMatchObject([
        409,
        { code: 'Busy', details: { reasons: [{ reason: 'NetworkChange', uid }] } },
      ])
      expect(json.message).toContain(`edgehostctl network revert ${uid}`)
    }
    expect((await ask('POST', `${path}/changes/${uid}/actions/confirm`)).status).toBe(200)
    await onConsole(/^(?![\s\S]*Network {4})/)
  })

  it('an address by DHCP stands on the console', async () => {
    const uid = await begin({ type: 'dhcp' })
    await untilState(ask, uid, 'trial', 60_000)
    await onConsole(/its links have now: https:\/\/192\.0\.2\.1[0-5]\d:5080/)
    expect((await ask('POST', `${path}/changes/${uid}/actions/revert`)).status).toBe(200)
    await untilState(ask, uid, 'reverted')
  })

  it('a daemon that starts in a trial keeps its certificate', async () => {
    const certificate = () => host.output(['sha256sum', '/var/lib/edgehostd/tls/certificate.pem'])
    const before = await certificate()
    const uid = await begin(addressed(12))
    await untilState(ask, uid, 'trial')
    await host.output(['systemctl', 'restart', 'edgehostd'])
    await host.output(['systemctl', 'reload', 'edgehostd'])
    await untilState(ask, uid, 'trial')
    expect(await certificate()).toBe(before)
    await ask('POST', `${path}/changes/${uid}/actions/revert`)
    await untilState(ask, uid, 'reverted')
  })

  it('name servers that answered before and do not after the apply take the change back', async () => {
    // A server beside the neighbour that answers at once, from the same tree as that of DHCP.
    const server = spawn(
      'setpriv',
      [
        ...['--pdeathsig', 'KILL', 'nsenter', '-t', String(network.clientNamespace()), '-n'],
        ...[
          'chroot',
          await lowerFolder('network'),
          'dnsmasq',
          '--keep-in-foreground',
          '--conf-file=/dev/null',
        ],
        ...['--no-resolv', '--no-hosts', '--local=/test/', '--listen-address=192.0.2.1', '--bind-interfaces'],
        ...['--user=root', '--pid-file='],
      ],
      { stdio: 'ignore' },
    )
    try {
      await host.sh('ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf')
      const good = await begin(addressed(11, { nameservers: ['192.0.2.1'] }))
      await untilState(ask, good, 'trial')
      expect((await ask('POST', `${path}/changes/${good}/actions/confirm`)).status).toBe(200)
      const bad = await begin(addressed(11, { nameservers: ['192.0.2.77'] }))
      await untilState(ask, bad, 'reverted', 50_000)
      expect(await stateOf(ask, bad)).toMatchObject({
        reason: 'failed',
        message: 'the name servers answered before the change, and not after it',
      })
    } finally {
      server.kill('SIGKILL')
    }
  })

  it('a reset wipes the network and the configuration: the files of the administrator and of the package count again', async () => {
    expect(await host.read(kept)).toContain('192.0.2.11/24')
    await host.write('/etc/edgehostd/config.yaml', 'log: {level: debug}\n')
    const query = 'wipe=network,configuration'
    const plan = JSON.parse(
      (await ask('POST', `${actions}/reset?dryRun=true&${query}`, {})).text,
    ) as ResetPlan
    const items = new Map(plan.removes.map(({ phase, items: each }) => [phase, each.join('\n')]))
    expect(items.get('network')).toContain(kept)
    expect(items.get('configuration')).toContain('/etc/edgehostd/config.d/test.yaml')
    expect(items.get('configuration')).toContain(
      '/etc/edgehostd/config.yaml, which is then as the package has it',
    )
    expect(plan.stays).not.toContain('the network of the host')
    const pid = await host.mainPid()
    const accepted = await ask('POST', `${actions}/reset?${query}`, { hostName: plan.hostName })
    expect(accepted.status, accepted.text).toBe(202)
    // Until it is done nothing can be changed.
    const refused = await ask('DELETE', '/v1/edge-mgmt/cluster')
    expect([refused.status, refused.json]).toMatchObject([
      409,
      { code: 'Busy', details: { reasons: [{ reason: 'Reset' }] } },
    ])
    await eventually(async () => expect(await host.mainPid()).not.toBe(pid), 60_000)
    expect(
      await host.sh(
        'ls /usr/local/lib/systemd/network /run/systemd/network 2> /dev/null | grep edgehostd || true',
      ),
    ).toBe('')
    expect(
      await host.sh(
        'cmp /etc/edgehostd/config.yaml /usr/lib/edgehostd/config.yaml && ls /etc/edgehostd/config.d',
      ),
    ).toBe('')
    await eventually(async () => expect(await network.reaches('192.0.2.10')).toBe(true), 20_000)
    expect(await network.reaches('192.0.2.11')).toBe(false)
  })
})

describe('a host with a platform', () => {
  let plant: Plant
  let host: PlantHost
  let ask: Ask
  const addressed = (last: number, more: object = {}) => ({
    ...{ type: 'static', ip: `10.78.0.${last}`, subnet: '255.255.255.0' },
    ...more,
  })
  const begin = (last: number, query: string, more: object = {}) =>
    ask('PUT', `${path}/interfaces/host0/config?${query}`, addressed(last, more))

  beforeAll(async () => {
    plant = await bootPlant({ hosts: ['network'] })
    host = plant.hosts[0]!
    ask = rootOf(() => host.leader)
    await host.write(
      '/etc/systemd/network/20-host0.network',
      `[Match]\nName=host0\n[Network]\nAddress=${host.address}/24\nIPv6AcceptRA=no\n`,
    )
    // networkd 252 fails on a link that has its address already when it starts.
    await host.sh(
      `systemctl enable --quiet dbus.socket edgehostd-network; systemctl start dbus.socket
      ip address flush dev host0; ip link set host0 down; systemctl enable --now systemd-networkd systemd-resolved`,
    )
    await eventually(async () => {
      expect(await host.output(['networkctl', 'list', '--no-legend', 'host0'])).toMatch(/ configured$/m)
    }, 20_000)
  })
  afterAll(() => plant.unplug())

  it('confirm=platform is refused before it is connected', async () => {
    expect((await begin(50, 'confirm=platform')).json).toMatchObject({ code: 'BadRequest' })
    const { exitCode, stderr } = await host.connect('--fingerprint', await plant.fingerprint())
    expect(exitCode, stderr).toBe(0)
    await host.untilLink(({ isConnected }) => isConnected, 60_000)
  })

  it('with confirm=platform the next heartbeat on a new connection confirms the new address', async () => {
    const reply = await begin(50, 'window=60&confirm=platform')
    expect(reply.status, reply.text).toBe(202)
    await untilState(ask, reply.json.uid, 'confirmed', 30_000)
    expect(await host.read(kept)).toContain('10.78.0.50/24')
    await host.untilLink(({ isConnected }) => isConnected)
  })

  it('a change that takes the platform away is taken back, and the host connects again', async () => {
    const reply = await ask('PUT', `${path}/interfaces/host0/config?window=60&confirm=platform`, {
      ...{ type: 'static', ip: '198.51.100.50', subnet: '255.255.255.0' },
    })
    expect(reply.status, reply.text).toBe(202)
    await untilState(ask, reply.json.uid, 'reverted', 55_000)
    expect(await stateOf(ask, reply.json.uid)).toMatchObject({
      reason: 'failed',
      message: 'the platform answered before the change, and not after it',
    })
    await host.untilLink(({ isConnected }) => isConnected, 30_000)
  })
})
