import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgeplatform, type Edgeplatform } from './host/edgeplatform.ts'
import { eventually } from './host/eventually.ts'

const password = 'right canary 1501'

let platform: Edgeplatform
let token: string

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

  it('root makes the first administrator, who sets a password and signs in', async () => {
    const spec = { emailId: 'you@plant.example', roles: ['admin'] }
    const made = await platform.asRoot('POST', '/v1/users', { spec })
    expect(made.status).toBe(201)
    const { uid } = JSON.parse(made.text) as { uid: string }
    const shown = await platform.asRoot('GET', `/v1/users/${uid}`)
    const link = (JSON.parse(shown.text) as { status: { activationLink: string } }).status.activationLink
    const { pathname } = new URL(link)
    expect(link).toBe(`https://a.example${pathname}`)
    expect((await platform.ask('PATCH', pathname, { body: { password } })).status).toBe(204)
    const reply = await signIn()
    expect(reply.status).toBe(200)
    token = reply.json.Authorization as string
    expect((await platform.ask('GET', '/v1/users', { token })).json.listmeta.count).toBe(1)
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

  it('a purge leaves no file, and no unit', async () => {
    await platform.output(['dpkg', '--purge', 'edgeplatform'], { env: { DEBIAN_FRONTEND: 'noninteractive' } })
    const left = await platform.sh(
      'find / -xdev -path /proc -prune -o -path /root -prune -o -name "*edgeplatform*" -print | grep -v "^/var/log\\|^/sys\\|^/tmp/systemd-private\\|^/var/tmp/systemd-private" || true',
    )
    expect(left.trim()).toBe('')
  })
})
