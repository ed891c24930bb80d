import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, it, onTestFinished } from 'vitest'
import type { NetworkChange, NetworkDryRun } from '../../../src/network/schemas.ts'
import { createCtl } from '../../support/ctl.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

/** edgehostctl as root on a host, whose changes are played. */
async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-command-'))
  const socket = join(folder, 'sock')
  const edge = await createTestEdge({ socket })
  const { port } = await edge.daemon.rooms.api.listen(0)
  const ctl = createCtl()
  onTestFinished(async () => {
    await edge.stop()
    rmSync(folder, { recursive: true })
    rmSync(ctl.home, { recursive: true })
  })
  /** edgehostctl on another machine; the other addresses of the played host lead nowhere. */
  async function logIn() {
    const tls = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
    await once(tls, 'secureConnect')
    const fingerprint = tls.getPeerX509Certificate()!.fingerprint256
    tls.destroy()
    const there = ['--host', `127.0.0.1:${port}`]
    const login = [...there, '--fingerprint', fingerprint, 'login', 'alice', '--password-stdin']
    expect(await ctl.run(login, 'alice pass\n')).toMatchObject({ exitCode: 0 })
    return (...args: readonly string[]) => ctl.run([...there, 'network', ...args])
  }
  const run = (...args: readonly string[]) => ctl.run(['--socket', socket, 'network', ...args])
  /** Begins a command that changes something, and waits until its change is handed over. */
  async function begin(...args: readonly string[]) {
    const ended = run(...args)
    await waitFor(() => expect(edge.network.isOpen()).toBe(true))
    return { ended }
  }
  return { edge, run, begin, logIn }
}
const address = ['--address', '192.0.2.9/24', '--gateway', '192.0.2.1'] as const

it('a change by command is confirmed as soon as it is applied', async () => {
  const { edge, begin } = await start()
  const { ended } = await begin('set', 'eth0', ...address, '-o', 'json')
  edge.network.applied()
  const { exitCode, stdout, stderr } = await ended
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('The change is confirmed: eth0')])
  expect(JSON.parse(stdout)).toMatchObject({
    state: 'confirmed',
    links: ['eth0'],
  } satisfies Partial<NetworkChange>)
})

it('over the network it is confirmed on a new connection, and what is wrong is said before', async () => {
  const { edge, logIn } = await start()
  const run = await logIn()
  const writes: (string | undefined)[] = []
  edge.app.server.on('request', ({ method, headers }: IncomingMessage) => {
    if (method === 'PUT') writes.push(headers['if-match'])
  })
  const ended = run('set', 'eth0', ...address, '-o', 'json')
  await waitFor(() => expect(edge.network.isOpen()).toBe(true))
  edge.network.applied()
  const { exitCode, stdout, stderr } = await ended
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('on a new connection')])
  expect(JSON.parse(stdout)).toMatchObject({ state: 'confirmed', requestedBy: 'alice' })
  // What the dry run has judged is what may be changed.
  expect(writes).toEqual([undefined, expect.stringMatching(/^"[\w-]{90}"$/)])
  const refused = await run('set', 'eth0', '--address', '192.0.2.9/24', '--gateway', '198.51.100.1')
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('nothing was changed') as string,
  })
})

it.each([
  ['failed', 'eth0 has no carrier', 'it failed: eth0 has no carrier'],
  ['deadline', '', 'it was not confirmed before its deadline'],
  ['reboot', '', 'the host was started again before it was confirmed'],
] as const)(
  'a change that is taken back (%s) is exit code 7 with its reason',
  async (reason, message, said) => {
    const { edge, begin } = await start()
    const { ended } = await begin('set', 'eth0', '--type', 'dhcp')
    edge.network.end(`reverted\n${reason}\n1800000000000\n${message}\n`)
    expect(await ended).toMatchObject({ exitCode: 7, stderr: expect.stringContaining(said) as string })
  },
)

it('a network that is not as before says what differs', async () => {
  const { edge, begin } = await start()
  const { ended } = await begin('set', 'eth0', '--type', 'dhcp')
  edge.network.end('revertFailed\nfailed\n1800000000000\nthe route of eth2 is missing\n')
  expect(await ended).toMatchObject({
    exitCode: 7,
    stderr: expect.stringMatching(/not as before: .*the route of eth2 is missing/) as string,
  })
})

it('without confirmation it ends when the change is applied, and says how to confirm it; another one is refused meanwhile', async () => {
  const { edge, run, begin } = await start()
  const { ended } = await begin('bridge', 'br2', '--type', 'none', '--no-confirm')
  edge.network.applied()
  const { exitCode, stderr } = await ended
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringMatching(/unless it is confirmed: edgehostctl network confirm \w/),
  ])
  expect(edge.network.isOpen()).toBe(true)
  expect(await run('set', 'eth0', ...address)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('NetworkChangeOpen') as string,
  })
  expect(await run('management', 'eth0')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('NetworkChangeOpen') as string,
  })
})

it('a confirmation by the platform is refused on a host that has none, and beside --no-confirm', async () => {
  const { edge, run } = await start()
  expect(await run('set', 'eth0', ...address, '--confirm', 'platform')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/confirm/) as string,
  })
  expect(await run('set', 'eth0', ...address, '--confirm', 'platform', '--no-confirm')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--confirm and --no-confirm exclude each other') as string,
  })
  expect(edge.network.isOpen()).toBe(false)
})

it('what is wrong is said before anything is changed: the command line, and all problems of the change', async () => {
  const { edge, run } = await start()
  for (const [args, exitCode, said] of [
    [['set', 'eth0'], 2, 'needs --address ADDRESS/LENGTH or --type'],
    [['set', 'eth0', '--address', '192.0.2.9'], 2, '--address is 192.0.2.9'],
    [['set', 'eth0', '--address', '192.0.2.9/33'], 2, '--address is 192.0.2.9/33'],
    [['set', 'eth0', '--address', '2001:db8::9/24'], 2, 'must be an IPv4 address'],
    [['set', 'eth0', '--type', 'dhcp', '--mtu', '1e3'], 2, '--mtu is 1e3'],
    [['set', 'eth0', '--type', 'dhcp', '--window', 'soon'], 2, '--window is soon'],
    [['set', 'eth0', '--type', 'dhcp', '--window', '601'], 1, 'window'],
    [['vlan', 'office', '--type', 'dhcp'], 2, 'the name of a VLAN is PARENT.ID'],
    [['delete', 'eth0'], 1, 'eth0 is a NIC'],
    [['delete', 'br9'], 1, 'this host has no link br9'],
    [['set', 'eth0', '--type', 'dhcp', '--gateway', '192.0.2.1'], 1, 'nothing was changed'],
    [['set', 'eth9', '--type', 'dhcp'], 1, 'nothing was changed'],
  ] as const) {
    const ended = await run(...args)
    expect([args, ended.exitCode, ended.stderr]).toEqual([args, exitCode, expect.stringContaining(said)])
  }
  const tried = await run('set', 'eth0', ...address, '--dry-run', '-o', 'json')
  expect(tried.exitCode).toBe(0)
  expect(JSON.parse(tried.stdout)).toMatchObject({
    problems: [],
    reachableBy: expect.arrayContaining(['192.0.2.9']) as [],
  } satisfies Partial<NetworkDryRun>)
  const bad = await run('set', 'eth0', '--address', '192.0.2.9/24', '--gateway', '198.51.100.1', '--dry-run')
  expect(bad).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('gateway') as string })
  expect(edge.network.calls.filter((each) => each === 'start')).toEqual([])
})
