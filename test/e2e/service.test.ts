import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd, type Session } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { output } from './host/process.ts'

const right = 'right canary 0801'
const facts = '/v1/edge-mgmt/edgehosts/current'

let host: Edgehostd
let session: Session
let admin: Session

interface Audit {
  readonly spec: Readonly<Record<string, unknown>>
}

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right })
  await host.addUser({ name: 'olga', password: right, groups: ['sudo'] })
  session = await host.openSession('anna', right)
  admin = await host.openSession('olga', right)
})
afterAll(() => host.unplug())

const kill = (signal: string, pid: number) => host.output(['kill', `-${signal}`, String(pid)])

/** Waits for another main process than this one, ready. */
function successor(pid: number, timeoutMs?: number): Promise<number> {
  return eventually(async () => {
    const next = await host.mainPid()
    expect(next).not.toBe(0)
    expect(next).not.toBe(pid)
    expect(await host.property('ActiveState')).toBe('active')
    return next
  }, timeoutMs)
}

describe('a daemon that is killed', () => {
  it('a daemon that is killed twenty times under load refuses no connection and loses no session', async () => {
    const load = await host.startLoad({ path: facts, token: session.token, clients: 3 })
    let pid = await host.mainPid()
    for (let round = 0; round < 20; round += 1) {
      await kill('KILL', pid)
      pid = await successor(pid)
      // Every life answers before it ends, and knows the session.
      expect(await host.statusOf(session.token)).toBe(200)
    }
    const { outcomes } = await load.stop()
    // What was in flight at a kill is lost; a client sees that as a reset, or as an end, never as a closed port.
    const { 200: served = 0, ECONNRESET: reset = 0, ...others } = outcomes
    expect(others).toEqual({})
    expect(served).toBeGreaterThan(0)
    expect(reset).toBeLessThanOrEqual(20 * 3)
  })

  it('a daemon that is killed while PAM checks a password leaves a record of the attempt', async () => {
    const pid = await host.mainPid()
    const cut = host.login('anna', 'wrong canary 0802').catch(() => undefined)
    // Then PAM sleeps for its failure delay.
    await eventually(async () => expect(await host.sh('pgrep -c pamtester || true')).toBe('1\n'))
    await new Promise((resolve) => setTimeout(resolve, 500))
    await kill('KILL', pid)
    await successor(pid)
    await cut
    const path = '/v1/edge-mgmt/edgehosts/current/audits?limit=5'
    const { items } = (await host.http('GET', path, { token: admin.token })).json as { items: Audit[] }
    expect(items.map(({ spec }) => spec)).toContainEqual(
      expect.objectContaining({
        actor: expect.objectContaining({ uid: 'anna' }),
        message: 'Log in with an operating-system account',
        outcome: 'unknown',
      }),
    )
  })
})

describe('a daemon that hangs', () => {
  it('a hung daemon is restarted by the watchdog, and clients that asked meanwhile get a reply', async () => {
    await host.configureUnit('watchdog', '[Service]\nWatchdogSec=3\nTimeoutAbortSec=2\n')
    const pid = await host.mainPid()
    // Longer than a watchdog's time: the daemon feeds it.
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    expect(await host.mainPid()).toBe(pid)
    await kill('STOP', pid)
    const asked = host.http('GET', '/v1/ping')
    await successor(pid, 20_000)
    expect((await asked).status).toBe(200)
    expect(await host.sh('journalctl -u edgehostd --no-pager')).toMatch(/Watchdog timeout/)
    expect(await host.statusOf(session.token)).toBe(200)
    await host.sh('rm /etc/systemd/system/edgehostd.service.d/watchdog.conf; systemctl daemon-reload')
  })
})

describe('a broken configuration', () => {
  it('a broken configuration fails with 78 under load; once it is mended the daemon answers without another command', async () => {
    const load = await host.startLoad({ path: facts, token: session.token })
    const pid = await host.mainPid()
    await host.write('/etc/edgehostd/config.d/99-broken.yaml', 'api:\n  prot: 5080\nlog:\n  level: loud\n')
    await kill('TERM', pid)
    await eventually(async () => {
      const journal = await host.sh('journalctl -u edgehostd --no-pager')
      expect(journal).toMatch(/status=78/)
      // Every problem at once, with its place.
      expect(journal).toMatch(/99-broken\.yaml:2\b.*prot/)
      expect(journal).toMatch(/99-broken\.yaml:4\b.*level/)
    })
    // Several starts fail: the port must outlast more than a few.
    await eventually(
      async () => expect(Number(await host.property('NRestarts'))).toBeGreaterThanOrEqual(4),
      60_000,
    )
    expect((await host.output(['systemctl', 'is-active', 'edgehostd.socket'])).trim()).toBe('active')

    await host.sh('rm /etc/edgehostd/config.d/99-broken.yaml')
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
    const { outcomes } = await load.stop()
    // The old process finishes its requests in flight: clients only wait longer.
    expect(Object.keys(outcomes)).toEqual(['200'])
    expect(await host.sh('journalctl --no-pager')).not.toMatch(/trigger-limit-hit|start-limit-hit/)
  })

  it('--check-config reports a broken configuration, and not a good one', async () => {
    const check = (flags: string) =>
      host.run([
        'bash',
        '--norc',
        '-c',
        `/usr/lib/edgehostd/node /usr/lib/edgehostd/main.cjs --check-config ${flags}`,
      ])
    expect((await check('')).exitCode).toBe(0)
    await host.write('/etc/edgehostd/config.d/99-broken.yaml', 'host: {mode: offline}\n')
    const broken = await check('')
    await host.sh('rm /etc/edgehostd/config.d/99-broken.yaml')
    expect(broken.exitCode).toBe(78)
    expect(broken.stdout + broken.stderr).toMatch(/99-broken\.yaml:1\b/)
  })

  it("a configured port that differs from the socket's is refused with advice to change the socket", async () => {
    await host.write('/etc/edgehostd/config.d/99-port.yaml', 'api: {port: 5081}\n')
    const pid = await host.mainPid()
    await kill('TERM', pid)
    await eventually(async () => {
      expect(await host.sh('journalctl -u edgehostd --no-pager')).toMatch(/systemctl edit edgehostd\.socket/)
    })
    expect(await host.sh('journalctl -u edgehostd --no-pager --lines=20')).toMatch(/status=78/)
    await host.sh('rm /etc/edgehostd/config.d/99-port.yaml')
    await successor(pid, 30_000)
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
  })

  it('the port of a changed socket is served once it is configured', async () => {
    await host.write('/etc/edgehostd/config.d/99-port.yaml', 'api: {port: 5443}\n')
    await host.write(
      '/etc/systemd/system/edgehostd.socket.d/port.conf',
      '[Socket]\nListenStream=\nListenStream=5443\n',
    )
    await host.sh(
      'systemctl daemon-reload; systemctl stop edgehostd.service; systemctl restart edgehostd.socket; systemctl start edgehostd',
    )
    const listening = (await host.log()).filter(({ msg }) => msg === 'listening').at(-1)!
    expect(listening.port).toBe(5443)
    await host.sh(`rm /etc/edgehostd/config.d/99-port.yaml /etc/systemd/system/edgehostd.socket.d/port.conf
      systemctl daemon-reload; systemctl stop edgehostd.service; systemctl restart edgehostd.socket; systemctl start edgehostd`)
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
  })
})

describe('a stop', () => {
  it('a stop finishes requests in flight: a login in its refusal delay gets its reply', async () => {
    const pid = await host.mainPid()
    const from = await host.newAddress()
    const before = (await host.journal('edgehostd')).length
    const refused = host.login('anna', 'wrong canary 0802', { from })
    await eventually(async () => {
      const { stdout } = await host.run(['pgrep', '-x', 'pamtester'])
      expect(stdout.trim()).not.toBe('')
    })
    // Allowed by the sandbox as well: a check of a password stands back behind the daemon.
    expect(await host.sh('cut -d" " -f19 /proc/$(pgrep -nx pamtester)/stat')).toBe('5\n')
    await kill('TERM', pid)
    expect(await refused).toMatchObject({ status: 401, json: { code: 'InvalidCredentials' } })
    await successor(pid)
    const since = (await host.journal('edgehostd'))
      .slice(before)
      .map(({ message }) => message)
      .join('\n')
    expect(since).not.toMatch(/status=|Failed with result/)
  })

  it('systemctl restart under load loses no request, even right after the start', async () => {
    const since = (await host.output(['date', '+%s'])).trim()
    const load = await host.startLoad({ path: facts, token: session.token, clients: 3 })
    for (let round = 0; round < 8; round += 1) await host.output(['systemctl', 'restart', 'edgehostd'])
    const { outcomes } = await load.stop()
    expect(Object.keys(outcomes)).toEqual(['200'])
    const journal = await host.sh('journalctl -u edgehostd --no-pager --since "@$1"', since)
    expect(journal).not.toMatch(/timed out|Failed with result/)
  })
})

describe("an administrator's own certificate", () => {
  const fingerprint = (file: string) => new X509Certificate(readFileSync(file)).fingerprint256

  async function makeCertificate(name: string, kind: readonly string[]): Promise<string> {
    const file = join(host.folder, `${name}.pem`)
    const key = join(host.folder, `${name}.key`)
    await output('openssl', [
      ...[
        'req',
        '-x509',
        '-nodes',
        ...kind,
        '-days',
        '300',
        '-subj',
        `/CN=${name}`,
        '-keyout',
        key,
        '-out',
        file,
      ],
      ...['-addext', 'subjectAltName=IP:10.77.0.1,IP:127.0.0.1,DNS:localhost'],
    ])
    return file
  }

  async function use(file: string): Promise<void> {
    await host.write('/etc/edgehostd/tls/key.pem', readFileSync(file.replace(/pem$/, 'key')), 0o600)
    await host.write('/etc/edgehostd/tls/certificate.pem', readFileSync(file))
  }

  it('an EC and an RSA certificate are loaded by a reload under load without a failed request', async () => {
    const ec = await makeCertificate('ec', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'])
    const rsa = await makeCertificate('rsa', ['-newkey', 'rsa:2048'])
    await use(ec)
    await host.configure(
      'tls',
      'api: {tls: {certificateFile: /etc/edgehostd/tls/certificate.pem, keyFile: /etc/edgehostd/tls/key.pem}}\n',
    )
    const pid = await host.mainPid()
    const usual = { path: facts, token: session.token, cacerts: [ec, rsa] }
    const fresh = await host.startLoad({ ...usual, clients: 2 })
    const kept = await host.startLoad({ ...usual, clients: 2, keepAlive: true })
    await use(rsa)
    await host.output(['systemctl', 'reload', 'edgehostd'])
    await eventually(async () => {
      expect((await host.http('GET', '/v1/ping', { cacert: rsa })).status).toBe(200)
    })
    await use(ec)
    await host.output(['systemctl', 'reload', 'edgehostd'])
    await eventually(async () => {
      expect((await host.http('GET', '/v1/ping', { cacert: ec })).status).toBe(200)
    })
    const summary = await fresh.stop()
    expect(Object.keys(summary.outcomes)).toEqual(['200'])
    expect(Object.keys(summary.fingerprints).sort()).toEqual([fingerprint(ec), fingerprint(rsa)].sort())
    expect(Object.keys((await kept.stop()).outcomes)).toEqual(['200'])
    expect(await host.mainPid()).toBe(pid)
  })

  it('a broken certificate is not loaded: the one in use stays, and the journal says so', async () => {
    const file = join(host.folder, 'ec.pem')
    await host.write('/etc/edgehostd/tls/certificate.pem', 'not a certificate\n')
    await host.run(['systemctl', 'reload', 'edgehostd'])
    await eventually(async () => {
      const lines = await host.log()
      expect(lines.some(({ msg, priority }) => priority <= 4 && /certificate/i.test(msg))).toBe(true)
    })
    expect((await host.http('GET', '/v1/ping', { cacert: file })).status).toBe(200)
    await use(file)
  })
})
