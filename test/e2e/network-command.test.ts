import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import './host/global-setup.ts'

const password = 'a-long-Passw0rd'

describe('the network of a host is changed by command', () => {
  let network: NetworkHost
  let host: Edgehostd
  let folder = ''

  /** edgehostctl on the machine beside the host. */
  const there = (...args: readonly string[]) =>
    network.neighbour(
      ...['env', `XDG_CONFIG_HOME=${folder}`, process.execPath],
      ...[join(dirname(inject('deb')), 'edgehostctl.cjs'), ...args],
    )
  /** edgehostctl on the host, as root. */
  const here = (...args: readonly string[]) => host.run(['edgehostctl', ...args])
  const last = async () =>
    (
      JSON.parse((await here('-o', 'json', 'network', 'changes')).stdout) as {
        items: readonly { state: string }[]
      }
    ).items[0]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehost-'))
    network = await bootNetworkHost('networkd')
    host = asEdgehostd(network)
    await host.write(
      '/etc/edgehostd/config.d/test.yaml',
      'api: {rateLimits: {enabled: false}}\nnetwork: {shortestWindowSeconds: 5}\n',
    )
    await installPackage(host, await readFile(inject('deb')))
    await host.addUser({ name: 'olga', password, groups: ['sudo'] })
    const status = JSON.parse((await here('-o', 'json', 'status')).stdout) as {
      service: { certificate: { fingerprint: string } }
    }
    const login = await network.neighbour(
      ...[
        'env',
        `XDG_CONFIG_HOME=${folder}`,
        'bash',
        '-c',
        `printf '%s\\n' "$1" | "\${@:2}"`,
        'login',
        password,
      ],
      ...[process.execPath, join(dirname(inject('deb')), 'edgehostctl.cjs'), '--host', '192.0.2.10'],
      ...['--fingerprint', status.service.certificate.fingerprint, 'login', 'olga', '--password-stdin'],
    )
    expect(login, login.stderr).toMatchObject({ exitCode: 0 })
  })
  afterAll(async () => {
    await network.unplug()
    await rm(folder, { recursive: true, force: true })
  })

  it('a dry run shows all problems, and what would be', async () => {
    const bad = await there(
      ...['--host', '192.0.2.10', 'network', 'set', 'host0', '--dry-run'],
      ...['--address', '192.0.2.11/24', '--gateway', '198.51.100.7'],
    )
    expect(bad).toMatchObject({ exitCode: 1 })
    expect(bad.stdout).toMatch(/gateway .*198\.51\.100\.7/)
    const good = await there(
      ...['--host', '192.0.2.10', 'network', 'set', 'host0', '--dry-run'],
      ...['--address', '192.0.2.11/24', '--gateway', '192.0.2.1'],
    )
    expect(good, good.stderr).toMatchObject({ exitCode: 0 })
    expect(good.stdout).toMatch(/Reachable by: 192\.0\.2\.11/)
    const refused = await there(
      '--host',
      '192.0.2.10',
      'network',
      'set',
      'host0',
      '--address',
      '192.0.2.11/24',
    )
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('nothing was changed') as string,
    })
    expect(await last()).toBeUndefined()
  })

  it('an address that moves is confirmed at the new one, and the host is known there', async () => {
    const moved = await there(
      ...['--host', '192.0.2.10', 'network', 'set', 'host0'],
      ...['--address', '192.0.2.11/24', '--gateway', '192.0.2.1', '--window', '30'],
    )
    expect(moved, moved.stderr).toMatchObject({ exitCode: 0 })
    expect(moved.stderr).toContain('It was confirmed at 192.0.2.11 on a new connection')
    expect(moved.stderr).toContain('from now on: edgehostctl --host 192.0.2.11')
    expect(await last()).toMatchObject({ state: 'confirmed' })
    const seen = await there('--host', '192.0.2.11', '-o', 'json', 'network', 'changes')
    expect(seen, seen.stderr).toMatchObject({ exitCode: 0 })
  })

  it('a new address that is not reached is taken back, which is exit code 7', async () => {
    await network.neighbour('ip', 'route', 'add', 'prohibit', '192.0.2.12/32')
    const taken = await there(
      ...['--host', '192.0.2.11', '-o', 'json', 'network', 'set', 'host0'],
      ...['--address', '192.0.2.12/24', '--gateway', '192.0.2.1', '--window', '8'],
    )
    await network.neighbour('ip', 'route', 'del', 'prohibit', '192.0.2.12/32')
    expect(taken, taken.stderr).toMatchObject({ exitCode: 7 })
    expect(JSON.parse(taken.stdout)).toMatchObject({ state: 'reverted', reason: 'deadline' })
    expect(taken.stderr).toContain('The change was taken back')
  })

  it('root on the host makes a bridge over the link and deletes it; without confirmation it is only tried', async () => {
    const made = await here(
      ...['network', 'bridge', 'br0', '--member', 'host0', '--address', '192.0.2.11/24'],
      ...['--gateway', '192.0.2.1', '--stp', 'off'],
    )
    expect(made, made.stderr).toMatchObject({ exitCode: 0 })
    expect(await last()).toMatchObject({ state: 'confirmed' })
    expect((await here('network', 'list')).stdout).toMatch(/br0\s+bridge\s+up/)
    const tried = await here('-o', 'json', 'network', 'delete', 'br0', '--no-confirm', '--window', '8')
    expect(tried, tried.stderr).toMatchObject({ exitCode: 0 })
    expect(JSON.parse(tried.stdout)).toMatchObject({ state: 'trial' })
    expect(tried.stderr).toMatch(/is taken back at .* unless it is confirmed: edgehostctl network confirm/)
    await eventually(async () => expect(await last()).toMatchObject({ state: 'reverted' }), 30_000)
    const deleted = await here('network', 'delete', 'br0')
    expect(deleted, deleted.stderr).toMatchObject({ exitCode: 0 })
    expect((await here('network', 'list')).stdout).not.toMatch(/br0/)
  })

  it('a command that cannot be done is refused with the reason', async () => {
    expect(await here('network', 'set', 'host0')).toMatchObject({ exitCode: 2 })
    expect(await here('network', 'set', 'host0', '--address', '192.0.2.11')).toMatchObject({ exitCode: 2 })
    expect(await here('network', 'delete', 'host0')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('host0 is a NIC') as string,
    })
    expect(await here('network', 'delete', 'br7')).toMatchObject({ exitCode: 1 })
    expect(await here('network', 'management', 'br7')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('none of the links that may be chosen') as string,
    })
  })

  it('the management interface goes along with its address, also over a restart of the daemon, and changes no route', async () => {
    const selected = async () =>
      (JSON.parse((await here('-o', 'json', 'network', 'management')).stdout) as { selected: string })
        .selected
    const routes = async () => (await host.run(['ip', 'route'])).stdout
    const before = await routes()
    expect(await here('network', 'management', 'eth2')).toMatchObject({ exitCode: 0 })
    expect((await here('-o', 'json', 'host', 'show')).stdout).toMatch(/"isManagement": true/)
    expect(await here('network', 'management', 'host0')).toMatchObject({ exitCode: 0 })
    expect(await routes()).toBe(before)
    // Without the bridge of before it has the address of its administrator's file again.
    const made = await here(
      ...['network', 'bridge', 'br0', '--member', 'host0', '--address', '192.0.2.10/24'],
      ...['--gateway', '192.0.2.1', '--stp', 'off'],
    )
    expect(made, made.stderr).toMatchObject({ exitCode: 0 })
    await eventually(async () => expect(await selected()).toBe('br0'))
    await host.sh('systemctl restart edgehostd')
    expect(await selected()).toBe('br0')
    expect(await here('network', 'delete', 'br0')).toMatchObject({ exitCode: 0 })
    await eventually(async () => expect(await selected()).toBe('host0'))
    expect(await here('network', 'management', '--default')).toMatchObject({ exitCode: 0 })
    expect(await selected()).toBe('')
  })
})
