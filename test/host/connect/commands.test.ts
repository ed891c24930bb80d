import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { airgapped, createConnectingHost } from '../../support/connecting-host.ts'
import { createCtl } from '../../support/ctl.ts'
import { connectProgram } from '../../support/programs.ts'
import type { PlatformLink } from '../../../src/uplink/schemas.ts'

// The programs as they ship. They restart no daemon here: every run ends before that.

const ctl = createCtl()
let host: Awaited<ReturnType<typeof createConnectingHost>>

beforeAll(() => copyFileSync(connectProgram(), join(ctl.home, 'platform.cjs')))
afterAll(() => rmSync(ctl.home, { recursive: true }))
beforeEach(async () => {
  host = await createConnectingHost()
})
afterEach(() => host.stop())

const run = (args: readonly string[], input?: string) =>
  ctl.run([`--socket=${host.path}`, 'platform', ...args], input)
/** With the configuration of the host that is played. */
async function runThere(args: readonly string[], input = '') {
  const words = ['--wait', process.execPath, ctl.program, `--socket=${host.path}`, 'platform', ...args]
  const { exitCode, stdout, stderr } = await execa('setsid', words, {
    ...{ reject: false, stripFinalNewline: false, extendEnv: false, input },
    env: { PATH: '/usr/bin:/bin', HOME: ctl.home, EDGEHOSTD_CONFIG: host.configFile },
  })
  return { exitCode, stdout, stderr }
}

describe('platform status', () => {
  const link: PlatformLink = {
    ...{ mode: 'connected', url: 'https://platform.example', registrationStatus: 'registered' },
    ...{ edgeHostUid: 'the-uid', projectUid: '', isConnected: true, since: '2026-01-31T08:00:00.123Z' },
    ...{ lastContactTimestamp: '2026-01-31T08:01:00.000Z', events: { waiting: 0, dropped: 0 } },
  }

  it('shows how the host is connected, and ends with 1 where it is not', async () => {
    host.played.link = link
    const well = await run(['status'])
    expect(well).toMatchObject({ exitCode: 0, stderr: '' })
    expect(well.stdout).toContain('Platform: https://platform.example\n')
    expect(well.stdout).toContain('State: connected since 2026-01-31 08:00:00Z\n')
    expect(well.stdout).toContain('Project: none\n')
    const cause = { kind: 'removed', message: 'removed\u001b[2J there' }
    host.played.link = { ...link, isConnected: false, cause, events: { waiting: 1_200, dropped: 3 } }
    const lost = await run(['status'])
    expect(lost.exitCode).toBe(1)
    expect(lost.stdout).toContain('State: not connected since')
    expect(lost.stdout).toContain('Events: 1,200 waiting, 3 events lost\n')
    expect(lost.stdout).not.toContain('\u001b')
    const asJson = await run(['status', '-o', 'json'])
    expect([asJson.exitCode, JSON.parse(asJson.stdout)]).toEqual([1, host.played.link])
  })

  it('says how an airgapped host is connected, which is no failure', async () => {
    host.played.link = airgapped
    const { exitCode, stdout } = await run(['status'])
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('edgehostctl platform connect URL')])
  })
})

describe('with the socket of a daemon that is not the installed one', () => {
  it.each([
    ['connect', ['https://127.0.0.1:1', '--token-file=-']],
    ['disconnect', ['--yes']],
  ])('platform %s changes nothing, and says what to write', async (action, more) => {
    host.writeDropIn('10-socket.yaml', 'api:\n  socket:\n    path: /run/installed.sock\n')
    const refused = await runThere([action, ...more], 'the-token\n')
    expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain(
      `${host.path} is not the socket of the installed edgehostd, /run/installed.sock`,
    )
    expect(refused.stderr).toContain('config.d/50-platform.yaml beside its own configuration file')
    expect(host.present()).toBe(0)
  })
})

describe('platform connect', () => {
  const connect = (...more: readonly string[]) =>
    runThere(['connect', 'https://127.0.0.1:1', ...more], 'the-token\n')

  it('takes the token from standard input, and says at which check it ended', async () => {
    const ended = await connect('--token-file', '-', '--fingerprint', 'ab'.repeat(32))
    expect(ended).toMatchObject({ exitCode: 1, stdout: '  name: 127.0.0.1 is an address\n' })
    expect(ended.stderr).toMatch(
      /^edgehostctl: 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\).*Nothing was changed\n$/,
    )
    expect(host.present()).toBe(0)
    const asJson = await connect('--token-file=-', '-o', 'json')
    expect([asJson.exitCode, asJson.stdout]).toEqual([1, ''])
  })

  it('refuses what it cannot use, before it asks the daemon', async () => {
    await host.stopDaemon()
    const wrong: [string[], string][] = [
      [['--token-file', '-', '--ca-file', 'x', '--fingerprint', 'y'], 'exclude each other'],
      [['--token-file', '/nowhere'], '/nowhere cannot be read'],
      [['--token-file', '-', '--fingerprint', 'y'], '64 digits'],
      [['--token-file', '-', '--ca-file', ctl.home], 'cannot be read'],
      [['--token-file', '-', '--proxy', 'https://proxy.example'], 'http://proxy.plant.example:3128'],
    ]
    for (const [args, problem] of wrong)
      expect(await connect(...args)).toMatchObject({
        exitCode: 2,
        stdout: '',
        stderr: expect.stringContaining(problem),
      })
    // The platform may know the host by its key.
    for (const args of [['--token-file', '-'], []])
      expect(await connect(...args)).toMatchObject({
        exitCode: 3,
        stderr: expect.stringContaining('systemctl start edgehostd'),
      })
  })

  it('is for the host itself', async () => {
    const ended = await ctl.run(['--host', 'box', 'platform', 'connect', 'https://x', '--token-file', 'f'])
    expect(ended).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('ssh root@box edgehostctl platform connect'),
    })
  })

  it('reports a configuration that cannot be used with exit code 78', async () => {
    writeFileSync(host.configFile, 'nonsense: 1\n')
    const ended = await connect('--token-file', '-')
    expect(ended).toMatchObject({ exitCode: 78, stderr: expect.stringContaining('config.yaml:1') })
  })
})

describe('platform disconnect', () => {
  it('needs --yes without a terminal, and says that a host is not connected', async () => {
    expect(await runThere(['disconnect'])).toEqual({
      ...{ exitCode: 0, stderr: '' },
      stdout: 'This host is not connected; nothing was to be done.\n',
    })
    host.writeDropIn(
      '50-platform.yaml',
      'host:\n  mode: connected\nplatform:\n  url: https://platform.example\n',
    )
    const ended = await runThere(['disconnect'])
    expect(ended).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('add --yes') })
    expect(readFileSync(host.places.dropIn, 'utf8')).toContain('connected')
  })
})
