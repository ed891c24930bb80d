import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { asEdgehostd, installPackage, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootHost } from './host/host.ts'
import { output } from './host/process.ts'

const right = 'right canary 1201'
const socket = '/run/edgehostd/edgehostd.sock'
const issueFile = '/run/issue.d/edgehostd.issue'
const audits = '/v1/edge-mgmt/edgehosts/current/audits'

let host: Edgehostd
/** The output of dpkg. */
let printed: string

beforeAll(async () => {
  host = asEdgehostd(await bootHost({ lower: 'machine' }))
  await host.write('/root/edgehostd.deb', await readFile(inject('deb')))
  printed = await host.output(['dpkg', '--install', '/root/edgehostd.deb'], {
    env: { DEBIAN_FRONTEND: 'noninteractive' },
  })
  await host.trust()
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
})
afterAll(() => host.unplug())

/** Asks over the socket, as root unless another user is named. */
async function ask(method: string, path: string, { user = 'root' } = {}) {
  const { exitCode, stdout, stderr } = await host.run([
    ...['setpriv', `--reuid=${user}`, '--init-groups', '--reset-env'],
    ...['curl', '--silent', '--show-error', '--max-time', '20', '--unix-socket', socket, '--request', method],
    ...['--write-out', '\n%{http_code}', `http://localhost${path}`],
  ])
  const end = stdout.lastIndexOf('\n')
  const body = stdout.slice(0, end)
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- replies of every shape
  const json: any = body.startsWith('{') ? JSON.parse(body) : undefined
  return { exitCode, stderr, status: Number(stdout.slice(end + 1)), json }
}

/** SHA-256 of the certificate that is shown on the port, as openssl says it. */
async function fingerprintOfPort(): Promise<string> {
  const pid = String(host.leader)
  const shown = await output('nsenter', [
    ...['-t', pid, '-n', 'sh', '-c'],
    'openssl s_client -connect 127.0.0.1:5080 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256',
  ])
  return shown.trim().replace(/^.*=/, '')
}

/** What a terminal shows before its login prompt. */
const showIssue = async () =>
  (await host.sh(`script -qec 'agetty --show-issue' /dev/null < /dev/null`)).replaceAll('\r', '')

describe('the local socket', () => {
  it('the local socket belongs to root, in a folder of its own', async () => {
    expect(await host.sh(`stat -c '%A %U %G' ${socket} /run/edgehostd`)).toBe(
      'srw------- root root\ndrwx------ root root\n',
    )
  })

  it('root is an administrator on the local socket without a password', async () => {
    expect(await ask('GET', '/v1/users/current')).toMatchObject({
      status: 200,
      json: { userName: 'root', role: 'admin' },
    })
    // Once the daemon has read the host.
    await eventually(async () => expect((await ask('GET', '/readyz')).status).toBe(200))
    expect((await ask('GET', '/healthz')).status).toBe(200)
  })

  it('the kernel refuses the local socket to an ordinary user, an administrator or not', async () => {
    expect(await ask('GET', '/v1/ping', { user: 'anna' })).toMatchObject({ exitCode: 7, status: 0 })
    // Also where the folder is open to all users.
    await host.sh('chmod 0755 /run/edgehostd')
    const refused = await ask('GET', '/v1/ping', { user: 'anna' })
    await host.sh('chmod 0700 /run/edgehostd')
    expect(refused).toMatchObject({ exitCode: 7, status: 0 })
  })

  it('requests on the local socket are audited as root, without an address', async () => {
    const { token } = await host.openSession('anna', right)
    const { items } = (await ask('GET', '/v1/users/sessions')).json
    expect((await ask('DELETE', `/v1/users/sessions/${items[0].metadata?.uid ?? items[0].uid}`)).status).toBe(
      204,
    )
    expect(await host.statusOf(token)).toBe(401)
    expect((await ask('GET', `${audits}?limit=1`)).json.items[0].spec).toMatchObject({
      actor: { uid: 'root', role: 'admin', address: 'local' },
    })
  })

  it('the local socket has no rate limit, but the port has', async () => {
    const script = `url=$1; shift
      for i in $(seq 100); do printf 'url = "%s"\\noutput = /dev/null\\n' "$url"; done |
      curl -sk -w '%{http_code}\\n' "$@" -K - | sort | uniq -c`
    const overSocket = await host.sh(script, `http://localhost${audits}`, '--unix-socket', socket)
    expect(overSocket.trim()).toBe('100 200')
    expect(await host.sh(script, `https://127.0.0.1:5080${audits}`)).toMatch(/ 429$/m)
  })

  it('after a kill the next daemon replaces the local socket', async () => {
    const inode = await host.sh(`stat -c %i ${socket}`)
    const pid = await host.mainPid()
    await host.output(['kill', '-KILL', String(pid)])
    await eventually(async () => {
      expect(await host.sh(`stat -c %i ${socket}`)).not.toBe(inode)
      expect((await ask('GET', '/v1/ping')).status).toBe(200)
    })
  })

  it('a stop removes the local socket and the text on the console', async () => {
    await host.sh('systemctl stop edgehostd.socket edgehostd.service')
    expect((await host.run(['ls', socket])).exitCode).not.toBe(0)
    expect((await host.run(['ls', issueFile])).exitCode).not.toBe(0)
    expect(await showIssue()).not.toContain('5080')
    await host.sh('systemctl start edgehostd.socket edgehostd.service')
    expect((await ask('GET', '/v1/ping')).status).toBe(200)
  })

  it('the socket of another running process is kept, and the journal says how to find that process', async () => {
    await host.sh('systemctl stop edgehostd.socket edgehostd.service')
    await host.sh(`mkdir -p -m 0700 /run/edgehostd
      systemd-run --quiet --unit=foreign /usr/lib/edgehostd/node -e "require('http').createServer((q, r) => r.end('foreign')).listen('${socket}')"`)
    await eventually(async () => expect((await host.run(['test', '-S', socket])).exitCode).toBe(0))
    // Not waited for: the daemon does not start.
    await host.sh('systemctl start --no-block edgehostd.service')
    await eventually(async () => {
      const said = (await host.log()).map(({ msg }) => msg).at(-1)
      expect(said).toBe(
        `another process listens on ${socket}: find it with ss -lxp src ${socket} and end it, or set api.socket.path`,
      )
    })
    // The command finds the process.
    expect(await host.sh(`ss -lxp src ${socket}`)).toMatch(/pid=\d+/)
    await host.sh('systemctl stop foreign')
    await eventually(async () => expect((await ask('GET', '/readyz')).status).toBe(200), 30_000)
  })
})

describe('the console', () => {
  it('the console shows the address and the fingerprint that openssl sees on the port', async () => {
    const issue = await showIssue()
    expect(issue).toContain('edgehostd  https://10.77.0.1:5080 https://[fd77::1]:5080\n')
    expect(issue).toContain(`SHA-256    ${await fingerprintOfPort()}\n`)
  })

  it('the installation prints the same two lines as the console', () => {
    expect(printed).toMatch(
      /^edgehostd {2}https:\/\/10\.77\.0\.1:5080 https:\/\/\[fd77::1\]:5080\nSHA-256 {4}([0-9A-F]{2}:){31}[0-9A-F]{2}$/m,
    )
  })

  it('the console follows an address that is added and removed, also on a waiting prompt', async () => {
    await host.sh(`systemd-run --quiet --unit=terminal sh -c \
      "sleep infinity | script -qfc 'exec agetty --noclear - linux' /root/console"`)
    await eventually(async () => expect(await host.read('/root/console')).toContain('SHA-256'))
    await host.output(['ip', 'address', 'add', '10.78.0.9/24', 'dev', 'host0'])
    const line = 'edgehostd  https://10.77.0.1:5080 https://10.78.0.9:5080 https://[fd77::1]:5080'
    await eventually(async () => {
      const issue = await showIssue()
      expect(issue).toContain(`${line}\n`)
      // A new address may have made a new certificate.
      expect(issue).toContain(await fingerprintOfPort())
      expect(await host.read('/root/console')).toContain(line)
    }, 30_000)
    await host.output(['ip', 'address', 'del', '10.78.0.9/24', 'dev', 'host0'])
    await eventually(async () => expect(await showIssue()).not.toContain('10.78.0.9'), 30_000)
    await host.sh('systemctl stop terminal')
  })

  it('the console follows a certificate that was made again', async () => {
    const before = await fingerprintOfPort()
    await host.sh('rm -r /var/lib/edgehostd/tls; systemctl restart edgehostd')
    const after = await fingerprintOfPort()
    expect(after).not.toBe(before)
    expect(await showIssue()).toContain(`SHA-256    ${after}\n`)
    await host.trust()
  })

  it('the console shows nothing where the configuration says so', async () => {
    await host.configure('console', 'host: {console: {issueFile: ""}}\n')
    expect(await showIssue()).not.toContain('5080')
    await host.sh('rm /etc/edgehostd/config.d/console.yaml; systemctl restart edgehostd')
    expect(await showIssue()).toContain('5080')
  })

  it('a console that cannot be written is one warning, and the daemon starts', async () => {
    await host.sh('systemctl stop edgehostd.service; rm -r /run/issue.d; systemctl start edgehostd.service')
    expect(await host.property('ActiveState')).toBe('active')
    const warnings = (await host.log()).filter(({ msg }) => msg.startsWith('the console does not show'))
    expect(warnings).toEqual([expect.objectContaining({ priority: 4, file: issueFile })])
    // The remedy in the warning works.
    await host.sh('systemd-tmpfiles --create edgehostd.conf && systemctl restart edgehostd')
    expect(await showIssue()).toContain('5080')
  })
})

describe('the sandbox', () => {
  it('the sandbox lets the daemon write only its own folder in /run, and that of the console', async () => {
    const pid = String(await host.mainPid())
    const attempt = async (path: string) => {
      const inUnit = ['nsenter', '-t', pid, '-m', 'setpriv', '--no-new-privs', '--bounding-set=-all']
      return (await host.run([...inUnit, 'sh', '-c', `touch ${path}/canary && rm ${path}/canary`])).exitCode
    }
    expect(await attempt('/run')).not.toBe(0)
    expect(await attempt('/run/systemd')).not.toBe(0)
    expect(await attempt('/run/edgehostd')).toBe(0)
    expect(await attempt('/run/issue.d')).toBe(0)
  })

  it('systemd-analyze verify finds no fault in the units', async () => {
    const { exitCode, stderr } = await host.run([
      ...['systemd-analyze', 'verify', '--man=no'],
      ...['/lib/systemd/system/edgehostd.service', '/lib/systemd/system/edgehostd.socket'],
    ])
    expect([exitCode, stderr.match(/edgehostd.*/g) ?? []]).toEqual([0, []])
  })
})

/** The journal line of the last login that PAM did not answer. */
async function advice(): Promise<string> {
  expect((await host.login('anna', right)).json.code).toBe('PamUnavailable')
  const line = (await host.log()).findLast(({ msg }) => msg === 'request failed')
  return (line?.err as { message: string }).message
}

describe('what the journal advises', () => {
  it('the advice in the journal finds a missing PAM module', async () => {
    await host.sh(
      'cp /etc/pam.d/edgehostd /root/; echo "auth required pam_not_there.so" > /etc/pam.d/edgehostd',
    )
    const [command = ''] = /journalctl --since=-10min -t pamtester/.exec(await advice()) ?? []
    expect(await host.sh(`${command} --no-pager`)).toContain('pam_not_there.so')
    await host.sh('cp /root/edgehostd /etc/pam.d/')
  })

  it('the advice in the journal writes a missing service file', async () => {
    await host.sh('rm /etc/pam.d/edgehostd')
    const [command = ''] = /printf .*$/.exec(await advice()) ?? []
    await host.sh(command)
    expect((await host.login('anna', right)).status).toBe(200)
    await host.sh('cp /root/edgehostd /etc/pam.d/')
  })

  it('the advice in the journal finds a missing pamtester', async () => {
    await host.sh('mv /usr/lib/edgehostd/pamtester /root/')
    expect(await advice()).toContain(
      'see ls -l /usr/lib/edgehostd/pamtester, install the package again or set auth.pam.program',
    )
    await installPackage(host, await readFile(inject('deb')))
    expect((await host.login('anna', right)).status).toBe(200)
  })
})
