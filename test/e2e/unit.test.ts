import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { findLeaks } from './host/leaks.ts'

const right = 'right canary 1001'

let host: Edgehostd
let token: string

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right })
  token = (await host.openSession('anna', right)).token
})
afterAll(() => host.unplug())

describe('the installed unit', () => {
  it('systemd-analyze rates the exposure of the running unit at most 2.0', async () => {
    const rating = await host.output(['systemd-analyze', 'security', '--no-pager', 'edgehostd.service'])
    const overall = /Overall exposure level for edgehostd\.service: ([\d.]+)/.exec(rating)?.[1]
    expect(Number(overall), rating).toBeLessThanOrEqual(2)
  })

  it('the unit reports that it is ready, and names the port', async () => {
    expect(await host.property('Type')).toBe('notify')
    expect(await host.property('StatusText')).toMatch(/5080/)
  })

  it.each([
    ['write /etc', 'touch /etc/canary'],
    ['write /usr', 'touch /usr/canary'],
    ['write a home', 'touch /home/anna/canary'],
    ['mount', 'mount -t tmpfs tmpfs /tmp'],
    ['change the clock', 'date -s 2001-01-01'],
    ['change the name of the host', 'echo canary > /proc/sys/kernel/hostname'],
  ])('the unit cannot %s', async (_, attempt) => {
    // Inside the namespaces of the unit and with its capabilities, like a child of the daemon.
    const pid = String(await host.mainPid())
    const inUnit = ['nsenter', '-t', pid, '-m', 'setpriv', '--no-new-privs', '--bounding-set=-all']
    const { exitCode } = await host.run([...inUnit, 'sh', '-c', attempt])
    expect(exitCode).not.toBe(0)
  })

  it('the unit runs without a capability and cannot gain one', async () => {
    const status = await host.output(['cat', `/proc/${await host.mainPid()}/status`])
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapBnd:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
  })

  it('only root can read the secrets of the unit', async () => {
    const found = await host.sh(`
      find /var/lib/edgehostd -maxdepth 0 -printf '%m %U\\n'
      find /var/lib/edgehostd -type f -perm /077 ! -name certificate.pem -print`)
    expect(found.trim()).toBe('700 0')
  })

  it('the unit starts with the certificate whose fingerprint it logs', async () => {
    const certificate = new X509Certificate(await readFile(host.cacert))
    const journal = (await host.journal('edgehostd')).map(({ message }) => message).join('\n')
    expect(journal.replaceAll(':', '').toUpperCase()).toContain(
      certificate.fingerprint256.replaceAll(':', ''),
    )
    expect(certificate.checkHost('localhost')).toBe('localhost')
    expect(certificate.checkIP('10.77.0.1')).toBe('10.77.0.1')
    expect(certificate.checkHost((await host.output(['hostname'])).trim())).toBeDefined()
  })

  it('the port accepts TLS 1.2 and 1.3 with forward secrecy only', async () => {
    const probe = (flags: string) =>
      host.run(['bash', '--norc', '-c', `openssl s_client -connect 127.0.0.1:5080 ${flags} < /dev/null`])
    expect((await probe('-tls1_3')).stdout).toMatch(/TLSv1\.3/)
    expect((await probe('-tls1_2')).stdout).toMatch(/ECDHE-ECDSA-(AES\d+-GCM|CHACHA20)/)
    expect((await probe('-tls1_1 -cipher DEFAULT@SECLEVEL=0')).exitCode).not.toBe(0)
    expect((await probe('-tls1_2 -cipher ECDHE-ECDSA-AES256-SHA:AES256-GCM-SHA384')).exitCode).not.toBe(0)
  })

  it('plain HTTP gets no reply', async () => {
    const { stdout } = await host.run([
      'curl',
      '--silent',
      '--max-time',
      '8',
      'http://127.0.0.1:5080/v1/ping',
    ])
    expect(stdout).not.toMatch(/pong|location/i)
  })
})

describe('the journal of a healthy host', () => {
  it('reads write no line in the journal', async () => {
    const before = (await host.journal('edgehostd')).length
    for (const path of [
      '/v1/ping',
      '/v1/users/current',
      '/v1/edge-mgmt/settings',
      '/v1/edge-mgmt/edgehosts/current',
    ]) {
      expect((await host.http('GET', path, { token })).status).toBe(200)
    }
    expect((await host.journal('edgehostd')).slice(before)).toEqual([])
  })

  it('the journal has a login with user, address and request id', async () => {
    const from = await host.newAddress()
    const reply = await host.login('anna', right, { from })
    // journald takes a line a little after it was written.
    await eventually(async () => {
      const line = (await host.log()).filter(({ msg }) => msg === 'login').at(-1)
      expect(line).toMatchObject({ user: 'anna', address: from, priority: 6 })
      expect(Object.values(reply.headers).flat()).toContain(line!.ref)
    })
  })

  it('the journal of a healthy host has no warnings', async () => {
    expect(await host.sh('journalctl --no-pager -u edgehostd -u edgehostd.socket -p warning -q')).toBe('')
  })

  it('lines have their priority: a failed start is an error', async () => {
    await host.write('/etc/edgehostd/config.d/99-broken.yaml', 'nothing: here\n')
    await host.run(['systemctl', 'restart', 'edgehostd'], { timeoutMs: 5_000 }).catch(() => undefined)
    expect(await host.sh('journalctl --no-pager -p err -q _SYSTEMD_UNIT=edgehostd.service')).toMatch(
      /99-broken/,
    )
    await eventually(async () =>
      expect(await host.property('StatusText')).toMatch(/^did not start: .*99-broken/),
    )
    await host.sh('rm /etc/edgehostd/config.d/99-broken.yaml')
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
  })

  it('a state of a newer version is refused as it is, and read as soon as it can be, without a command', async () => {
    const setSchema = (schema: string) =>
      host.sh(
        `/usr/lib/edgehostd/node -p "const sql = new (require('node:sqlite').DatabaseSync)('/var/lib/edgehostd/edgehostd.db'); const before = sql.prepare('PRAGMA user_version').get().user_version; sql.exec('PRAGMA user_version = ${schema}'); before"`,
      )
    await host.output(['systemctl', 'stop', 'edgehostd.service'])
    const schema = (await setSchema('9999')).trim()
    await host.run(['systemctl', 'start', 'edgehostd.service'])
    await eventually(async () => expect(Number(await host.property('NRestarts'))).toBeGreaterThan(0))
    await eventually(async () =>
      expect(await host.property('StatusText')).toMatch(/^did not start: .*schema 9999.*install the newer/),
    )
    expect((await setSchema(schema)).trim()).toBe('9999')
    expect((await host.http('GET', '/v1/users/current', { token })).status).toBe(200)
  })

  it('neither the journal nor any other file has a password or token', async () => {
    expect(await findLeaks(host)).toEqual([])
  })
})
