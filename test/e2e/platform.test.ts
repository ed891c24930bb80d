import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgeplatform, type Edgeplatform } from './host/edgeplatform.ts'
import { eventually } from './host/eventually.ts'

const password = 'right canary 1501'

let platform: Edgeplatform
let token: string

const ctl = (command: string, ...args: string[]) => platform.sh(command, ...args)
const signIn = () =>
  platform.ask('POST', '/v1/auth/authenticate', { body: { emailId: 'you@plant.example', password } })

beforeAll(async () => {
  platform = await bootEdgeplatform({ lower: 'minbase', wire: false })
})
afterAll(() => platform.unplug())

// The tests run in order: each one depends on the one before.
describe('the package of the platform in a minimal Debian', () => {
  it('its unit is active when dpkg is done, and it answers on port 443', async () => {
    expect(await platform.property('ActiveState')).toBe('active')
    expect(await platform.property('StatusText')).toMatch(/listening on port 443/)
    expect(await platform.ask('GET', '/v1/health/ping')).toMatchObject({ status: 200, json: { msg: 'pong' } })
    await eventually(async () =>
      expect(await platform.ask('GET', '/v1/health/ready')).toMatchObject({ status: 200 }),
    )
  })

  it('the daemon is a user of its own without a capability, and its sandbox is rated at most 2.0', async () => {
    const pid = await platform.property('MainPID')
    const status = await platform.output(['cat', `/proc/${pid}/status`])
    const uid = (await platform.output(['id', '-u', 'edgeplatform'])).trim()
    expect(status).toMatch(new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s`, 'm'))
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapBnd:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
    const rating = await platform.output([
      'systemd-analyze',
      'security',
      '--no-pager',
      'edgeplatformd.service',
    ])
    const overall = /Overall exposure level for edgeplatformd\.service: ([\d.]+)/.exec(rating)?.[1]
    expect(Number(overall), rating).toBeLessThanOrEqual(2)
  })

  it('only root may use the local socket, where it needs no login', async () => {
    expect((await platform.ask('GET', '/v1/system/status')).status).toBe(401)
    const { status, text } = await platform.asRoot('GET', '/v1/system/status')
    expect([status, (JSON.parse(text) as { failing: string[] }).failing]).toEqual([200, []])
    const mode = await platform.output(['stat', '-c', '%a %U', '/run/edgeplatform/edgeplatform.sock'])
    expect(mode.trim()).toBe('600 edgeplatform')
    expect((await platform.output(['stat', '-c', '%a %U', '/var/lib/edgeplatform'])).trim()).toBe(
      '700 edgeplatform',
    )
  })

  it('checks its configuration, and names a wrong key', async () => {
    expect(await platform.output(['edgeplatformd', '--check-config'])).toContain('the configuration is good')
    await platform.write('/etc/edgeplatform/config.d/10-site.yaml', 'platform: {hostname: a.example}\n')
    const { exitCode, stderr } = await platform.run(['edgeplatformd', '--check-config'])
    expect([exitCode, stderr]).toEqual([78, expect.stringMatching(/10-site\.yaml:1:12.*hostName/)])
    await platform.write('/etc/edgeplatform/config.d/10-site.yaml', 'platform: {hostName: a.example}\n')
    await platform.output(['systemctl', 'restart', 'edgeplatformd'])
    await platform.trust()
    expect(await platform.ask('GET', '/v1/health/ping')).toMatchObject({ status: 200 })
  })

  it('a browser gets the pages of the platform, as the package has them', async () => {
    const page = await platform.ask('GET', '/')
    expect(page.status).toBe(200)
    const [, script = ''] = / src="([^"]+)"/.exec(page.text) ?? []
    expect(script).toMatch(/^\/console\/console-[A-Z0-9]{8}\.js$/)
    expect(await platform.ask('GET', script)).toMatchObject({ status: 200 })
    expect(await platform.output(['ls', '/usr/lib/edgeplatform/platform-console'])).toContain('index.html.br')
  })

  it('root makes the first administrator by a command; the user sets a password by the link, and logs in', async () => {
    expect(await platform.output(['edgeplatformctl', 'status'])).toMatch(/State: ready/)
    const made = await platform.output(['edgeplatformctl', 'user', 'create', '--admin', 'you@plant.example'])
    const link = made.trim()
    const { pathname } = new URL(link)
    expect(link).toBe(`https://a.example${pathname}`)
    await ctl('printf "%s" "$1" | edgeplatformctl activate "$2" --password-stdin', password, link)
    expect((await platform.ask('PATCH', pathname, { body: { password } })).status).toBe(400)
    const reply = await signIn()
    expect(reply.status).toBe(200)
    token = reply.json.Authorization as string
    expect((await platform.ask('GET', '/v1/users', { token })).json.listmeta.count).toBe(1)
  })

  it('the user logs in over HTTPS with the fingerprint that status shows, and may not use the socket', async () => {
    const status = JSON.parse(await platform.output(['edgeplatformctl', 'status', '-o', 'json'])) as {
      certificate: { fingerprint: string }
    }
    await platform.output(['useradd', '--create-home', 'carol'])
    const asCarol = (command: string, ...args: string[]) =>
      platform.run(['su', '-s', '/bin/sh', 'carol', '-c', command, '--', ...args])
    expect(await asCarol('edgeplatformctl user list')).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('only root may open /run/edgeplatform/edgeplatform.sock') as string,
    })
    const login = `printf '%s' '${password}' | edgeplatformctl --host localhost --fingerprint ${status.certificate.fingerprint} login you@plant.example --password-stdin`
    expect(await asCarol(login)).toMatchObject({ exitCode: 0 })
    const list = await asCarol('edgeplatformctl --host localhost user list')
    expect([list.exitCode, list.stdout]).toEqual([
      0,
      expect.stringMatching(/^you@plant\.example +admin +active/m),
    ])
    expect(await asCarol('edgeplatformctl backup /tmp/x')).toMatchObject({ exitCode: 4 })
    await platform.output(['userdel', '--remove', 'carol'])
  })

  it('a pack is uploaded, and a profile with a pattern of a variable is imported', async () => {
    const pack = { name: 'edge-native-byoi', version: '1.0.0', layer: 'os', cloudTypes: ['edge-native'] }
    await platform.sh('mkdir /root/pack')
    await platform.write('/root/pack/pack.json', JSON.stringify(pack))
    await platform.write('/root/pack/values.yaml', 'pack: {}\n')
    await platform.output(['edgeplatformctl', 'pack', 'upload', '/root/pack'])
    const spec = {
      version: '1.0.0',
      template: {
        ...{ type: 'infra', cloudType: 'edge-native' },
        packs: [{ name: pack.name, layer: 'os', tag: '1.0.0', type: 'spectro', values: 'pack: {}\n' }],
      },
      variables: [{ name: 'hall', displayName: 'Hall', format: 'string', regex: '^[a-z]+$' }],
    }
    await platform.write('/root/profile.json', JSON.stringify({ metadata: { name: 'hall' }, spec }))
    const uid = await platform.output(['edgeplatformctl', 'profile', 'import', '/root/profile.json'])
    expect(uid.trim()).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('the completion of the shell and the manual page are installed', async () => {
    const words = await platform.sh(
      'bash -c \'source /usr/share/bash-completion/completions/edgeplatformctl; COMP_WORDS=(edgeplatformctl u); COMP_CWORD=1; _edgeplatformctl; echo "${COMPREPLY[@]}"\'',
    )
    expect(words.trim()).toBe('user')
    expect(await platform.sh('zcat /usr/share/man/man1/edgeplatformctl.1.gz')).toContain('edgeplatformctl')
  })

  it('a backup is made while it runs, and a restore on a fresh machine has its users and its certificate', async () => {
    await platform.write('/root/passphrase', 'correct horse battery staple\n')
    const made = await platform.output([
      ...['edgeplatformctl', 'backup', '/root/platform.backup', '--passphrase-file', '/root/passphrase'],
    ])
    expect(made).toContain('The backup is in /root/platform.backup')
    expect((await platform.output(['stat', '-c', '%a %U', '/root/platform.backup'])).trim()).toBe('600 root')
    expect(await platform.property('NRestarts')).toBe('0')
    const file = await readFile(`/proc/${platform.leader}/root/root/platform.backup`)

    const fresh = await bootEdgeplatform({ lower: 'minbase', wire: false })
    try {
      await fresh.write('/root/platform.backup', file)
      await fresh.write('/root/passphrase', 'correct horse battery staple\n')
      const restore = [
        'edgeplatformctl',
        'restore',
        '/root/platform.backup',
        '--yes',
        '--passphrase-file',
        '/root/passphrase',
      ]
      const running = await fresh.run(restore)
      expect([running.exitCode, running.stderr]).toEqual([
        1,
        expect.stringMatching(/is in use .*Nothing was changed/),
      ])
      await fresh.output(['systemctl', 'stop', 'edgeplatformd.socket', 'edgeplatformd.service'])
      const restored = await fresh.output(restore)
      expect(restored).toMatch(/^The former state is in \/var\/lib\/edgeplatform\.before-\w+;/m)
      expect(restored).toContain('New: /etc/edgeplatform/config.d/10-site.yaml')
      expect(await fresh.output(['edgeplatformd', '--check-config'])).toContain('the configuration is good')
      await fresh.output(['systemctl', 'start', 'edgeplatformd.socket', 'edgeplatformd.service'])
      await fresh.trust()
      const body = { emailId: 'you@plant.example', password }
      const reply = await fresh.ask('POST', '/v1/auth/authenticate', { body })
      expect(reply.status).toBe(200)
      const list = await fresh.ask('GET', '/v1/users', { token: reply.json.Authorization as string })
      expect(list.json.listmeta.count).toBe(1)
      const key = 'cat /var/lib/edgeplatform/tls/key.pem | sha256sum'
      expect(await fresh.sh(key)).toBe(await platform.sh(key))
      const owners = await fresh.sh(
        'find /var/lib/edgeplatform ! -user edgeplatform -o ! -group edgeplatform -o -perm /077 ! -name certificate.pem',
      )
      expect(owners.trim()).toBe('')
      expect(
        (await fresh.sh('find /var/lib -maxdepth 1 -name "edgeplatform*" | sort')).trim().split('\n'),
      ).toEqual(['/var/lib/edgeplatform', expect.stringMatching(/\.before-/)])
      // A purge removes the former state too, which has secrets.
      await fresh.output(['dpkg', '--purge', 'edgeplatform'], { env: { DEBIAN_FRONTEND: 'noninteractive' } })
      expect(await fresh.sh('find /var/lib -maxdepth 1 -name "edgeplatform*"')).toBe('')
    } finally {
      await fresh.unplug()
    }
  })

  it('a kill -9 refuses no connection, and users and tokens stay', async () => {
    const pid = await platform.property('MainPID')
    await platform.sh('kill -KILL "$1"', pid)
    expect(await platform.ask('GET', '/v1/health/ping')).toMatchObject({ status: 200 })
    expect(await platform.property('MainPID')).not.toBe(pid)
    expect((await platform.ask('GET', '/v1/users', { token })).status).toBe(200)
    expect((await signIn()).status).toBe(200)
  })

  it('a healthy platform writes no warning', async () => {
    const lines = await platform.journal('edgeplatformd')
    const bad = lines.filter(
      ({ message, priority }) => priority <= 4 && !/Main process exited|Failed with result/.test(message),
    )
    expect(bad).toEqual([])
    expect(JSON.stringify(lines)).not.toContain(password)
    expect(JSON.stringify(lines)).not.toContain(token)
  })

  const lines = async () => (await platform.journal('edgeplatformd')).length
  const inState = (file: string) => `/var/lib/edgeplatform/${file}`
  const wrongSetting = '/etc/edgeplatform/config.d/20-wrong.yaml'
  const node = (script: string) => ['/usr/lib/edgeplatform/node', '-e', script]
  const opened = (file: string) => `new (require('node:sqlite').DatabaseSync)('${inState(file)}')`
  it.each([
    ['a wrong setting', `echo 'platform: {hostname: a.example}' > ${wrongSetting}`, /20-wrong.*hostName/],
    [
      'a damaged database',
      `head -c 65536 /dev/zero | tr '\\0' x > ${inState('edgeplatform.db')}`,
      /edgeplatform\.db is damaged.*edgeplatformctl restore FILE.*systemctl start edgeplatformd/,
    ],
    ['an unusable certificate', `echo x > ${inState('tls/certificate.pem')}`, /certificate\.pem.*recover/],
    [
      'a newer schema',
      node(`"${opened('edgeplatform.db')}.exec('PRAGMA user_version = 9999')"`).join(' '),
      /schema 9999.*install the newer/,
    ],
  ])(
    '%s stops it once, until an operator has acted: it says why, and closes the port',
    async (_, spoil, why) => {
      const service = ['edgeplatformd.socket', 'edgeplatformd.service']
      await platform.output(['systemctl', 'stop', ...service])
      await platform.sh('rm -rf /root/whole; cp -a /var/lib/edgeplatform /root/whole')
      await platform.sh(spoil)
      const before = await lines()
      // The socket is open by then, and a connection waits for the daemon.
      await platform.output(['systemctl', 'start', 'edgeplatformd.socket'])
      expect((await platform.ask('GET', '/v1/health/ping')).status).toBe(0)
      await eventually(async () =>
        expect(
          (await platform.run(['systemctl', 'is-active', ...service, 'edgeplatformd-refused.target'])).stdout,
        ).toBe('inactive\nfailed\nactive\n'),
      )
      expect(await platform.property('ExecMainStatus')).toBe('78')
      expect(await platform.property('StatusText')).toMatch(why)
      const said = (await platform.journal('edgeplatformd')).slice(before)
      expect(said.filter(({ message }) => /main process exited/i.test(message))).toHaveLength(1)
      expect(said.filter(({ message }) => why.test(message))).toHaveLength(1)
      expect((await platform.run(['systemctl', 'status', ...service])).stdout).toMatch(why)
      expect(await platform.run(['edgeplatformctl', 'status'])).toMatchObject({
        exitCode: 3,
        stderr: expect.stringContaining('systemctl status edgeplatformd') as string,
      })

      await platform.sh(`rm -rf /var/lib/edgeplatform ${wrongSetting}; mv /root/whole /var/lib/edgeplatform`)
      await platform.output(['systemctl', 'start', 'edgeplatformd'])
      expect(await platform.ask('GET', '/v1/health/ping')).toMatchObject({ status: 200 })
      expect(
        (await platform.run(['systemctl', 'is-active', ...service, 'edgeplatformd-refused.target'])).stdout,
      ).toBe('active\nactive\ninactive\n')
    },
  )

  it.each([
    [
      'a state folder that another process still has',
      async () => {
        const script = `const held = ${opened('lock')}; held.exec('BEGIN EXCLUSIVE'); fs.writeFileSync('/run/held', ''); setInterval(() => held, 60_000)`
        await platform.output(['systemd-run', '--unit=holder', ...node(script)])
        await eventually(() => platform.output(['test', '-e', '/run/held']))
      },
      ['1', /is in use by another edgeplatformd/],
      'systemctl stop holder',
    ],
    [
      'a certificate that another program is going to write',
      async () => {
        const tls =
          'api: {tls: {certificateFile: /etc/edgeplatform/own.crt, keyFile: /etc/edgeplatform/own.key}}'
        await platform.write('/etc/edgeplatform/config.d/30-tls.yaml', `${tls}\n`)
      },
      ['66', /own\.crt.*no such file/],
      `cd ${inState('tls')}; cp -p key.pem /etc/edgeplatform/own.key; cp -p certificate.pem /etc/edgeplatform/own.crt`,
    ],
  ] as const)('%s is waited for', async (_, spoil, [exitCode, why], mend) => {
    await platform.output(['systemctl', 'stop', 'edgeplatformd.service'])
    await spoil()
    expect((await platform.run(['systemctl', 'start', 'edgeplatformd'])).exitCode).toBe(1)
    await eventually(async () => expect(Number(await platform.property('NRestarts'))).toBeGreaterThan(0))
    await eventually(async () => expect(await platform.property('StatusText')).toMatch(why))
    await eventually(async () => expect(await platform.property('ExecMainStatus')).toBe(exitCode))
    await platform.sh(mend)
    expect(await platform.ask('GET', '/v1/health/ping')).toMatchObject({ status: 200 })
    expect(await platform.property('ActiveState')).toBe('active')
  })

  it('a purge leaves no file, and no unit', async () => {
    await platform.output(['dpkg', '--purge', 'edgeplatform'], { env: { DEBIAN_FRONTEND: 'noninteractive' } })
    const left = await platform.sh(
      'find / -xdev -path /proc -prune -o -path /root -prune -o -name "*edgeplatform*" -print | grep -v "^/var/log\\|^/sys\\|^/tmp/systemd-private\\|^/var/tmp/systemd-private" || true',
    )
    expect(left.trim()).toBe('')
  })
})
