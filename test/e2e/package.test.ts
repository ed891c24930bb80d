import { inject, afterAll, beforeAll, describe, expect, it } from 'vitest'
import { asEdgehostd, installPackage, unlimited, type Edgehostd, type Session } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootHost } from './host/host.ts'
import { readFile } from 'node:fs/promises'
import { kubernetesPackage, repack } from './host/package.ts'

const right = 'right canary 1101'

let host: Edgehostd
let session: Session
let hostId: string
let printed = ''

beforeAll(async () => {
  host = asEdgehostd(await bootHost({ lower: 'minbase', wire: false }))
  await host.addUser({ name: 'anna', password: right })
})
afterAll(() => host.unplug())

const facts = (token: string) => host.http('GET', '/v1/edge-mgmt/edgehosts/current', { token })

// The tests run in order: each one depends on the one before.
describe('the package in a minimal Debian without a route', () => {
  it('the minimal Debian has no bus, no curl, no Node, no pamtester and no route', async () => {
    for (const program of ['dbus-daemon', 'curl', 'node', 'pamtester', 'openssl', 'ip']) {
      expect((await host.run(['sh', '-c', `command -v ${program}`])).stdout).toBe('')
    }
    expect((await host.output(['cat', '/proc/net/route'])).trim().split('\n')).toHaveLength(1)
  })

  it('the package installs from its one file, and its unit is active when dpkg is done', async () => {
    printed = await installPackage(host, await readFile(inject('deb')))
    expect(await host.property('ActiveState')).toBe('active')
    expect(await host.property('SubState')).toBe('running')
    expect(await host.property('StatusText')).toMatch(/listening/)
    await host.trust()
  })

  it('the installation says how to get what a cluster needs, and that package names what is missing', async () => {
    expect(printed).toMatch(
      /^For a Kubernetes cluster on this host: apt-get install \.\/edgehostd-kubernetes_/m,
    )
    await host.write('/root/edgehostd-kubernetes.deb', await kubernetesPackage(inject('deb')))
    const refused = await host.run(['dpkg', '--install', '/root/edgehostd-kubernetes.deb'])
    expect(refused.exitCode).not.toBe(0)
    for (const name of ['containerd', 'runc', 'containernetworking-plugins', 'conntrack'])
      expect(refused.stderr).toContain(`edgehostd-kubernetes depends on ${name}`)
    expect(refused.stderr).not.toContain('depends on edgehostd ')
    await host.output(['dpkg', '--purge', 'edgehostd-kubernetes'])
  })

  it('the documents that messages name are on the host', async () => {
    expect(await host.read('/usr/share/doc/edgehostd/operations.md')).toMatch(/^# Operations/)
    expect(await host.read('/usr/share/doc/edgehostd/adr/0025-kubeadm-engine.md')).not.toBe('')
  })

  it('a real account can log in after the installation', async () => {
    session = await host.openSession('anna', right)
  })

  it('a browser gets the pages of the host, as the package has them', async () => {
    const page = await host.http('GET', '/')
    expect([page.status, page.headers['content-type']]).toEqual([200, ['text/html; charset=utf-8']])
    const [, script = ''] = / src="([^"]+)"/.exec(page.text) ?? []
    expect(script).toMatch(/^\/console\/console-[A-Z0-9]{8}\.js$/)
    expect(await host.http('GET', script)).toMatchObject({ status: 200 })
    expect(await host.output(['ls', '/usr/lib/edgehostd/console'])).toContain('index.html.br')
  })

  it('the package describes the host', async () => {
    const reply = await facts(session.token)
    expect(reply).toMatchObject({
      status: 200,
      json: { status: { hostName: (await host.output(['hostname'])).trim() } },
    })
    hostId = reply.json.metadata.id as string
    expect(hostId).toMatch(/^edge-[0-9a-f]{32}$/)
  })

  it('the rate limits are on as shipped', async () => {
    const path = '/v1/edge-mgmt/edgehosts/current'
    const load = await host.startLoad({ path, token: session.token, clients: 4, pauseMs: 0, keepAlive: true })
    await eventually(async () =>
      expect(await facts(session.token)).toMatchObject({
        status: 429,
        json: { code: 'TooManyRequests' },
        headers: {
          'retry-after': ['1'],
          'ratelimit-policy': ['"edgehosts";q=50;w=5'],
          ratelimit: ['"edgehosts";r=0;t=1'],
        },
      }),
    )
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
    expect((await host.http('GET', '/v1/users/current', { token: session.token })).status).toBe(200)
    const { outcomes } = await load.stop()
    expect(Object.keys(outcomes).sort()).toEqual(['200', '429'])
    await eventually(async () => expect((await facts(session.token)).status).toBe(200))
  })

  it('the daemon starts after a reboot, as the same host with the same sessions', async () => {
    await host.reboot()
    await eventually(async () => {
      expect(await host.property('ActiveState')).toBe('active')
    })
    expect(await facts(session.token)).toMatchObject({ status: 200, json: { metadata: { id: hostId } } })
  })

  it('an account of chage -d 0 can log in once it has set its password', async () => {
    const renewed = 'renewed canary 1102'
    await host.addUser({ name: 'fresh', password: right })
    await host.output(['chage', '-d', '0', 'fresh'])
    expect(await host.login('fresh', right)).toMatchObject({ status: 401, json: { code: 'PasswordExpired' } })
    const reply = await host.http('POST', '/v1/users/default/password/reset', {
      body: { username: 'fresh', oldPassword: right, newPassword: renewed },
    })
    expect(reply).toMatchObject({ status: 204 })
    expect((await host.login('fresh', renewed)).status).toBe(200)
  })

  it('the package needs nothing that a minimal Debian does not have', async () => {
    expect((await host.output(['dpkg', '--audit'])).trim()).toBe('')
    const depends = await host.output(['dpkg-query', '-W', '-f', '${Depends}', 'edgehostd'])
    for (const name of depends
      .split(/[,|]/)
      .map((each) => each.trim().split(/[ :]/)[0]!)
      .filter(Boolean)) {
      expect((await host.run(['dpkg-query', '-W', name])).exitCode, name).toBe(0)
    }
  })

  it('the configuration of the package belongs to the administrator', async () => {
    const conffiles = await host.output(['dpkg-query', '-W', '-f', '${Conffiles}', 'edgehostd'])
    expect(conffiles).toContain('/etc/edgehostd/config.yaml')
    expect(conffiles).toContain('/etc/pam.d/edgehostd')
    expect((await host.run(['/usr/lib/edgehostd/node', '--version'])).stdout).toMatch(/^v24\./)
    expect((await host.run(['sh', '-c', 'ls /usr/share/man/man8/edgehostd.8*'])).exitCode).toBe(0)
  })

  it('an upgrade keeps state and configuration, without a closed port', async () => {
    await host.write('/etc/edgehostd/config.d/site.yaml', 'host: {name: press-17}\n')
    await host.sh('echo "# of this site" >> /etc/edgehostd/config.yaml')
    await host.configure('load', unlimited)
    const pid = await host.mainPid()
    const version = await host.output(['dpkg-query', '-W', '-f', '${Version}', 'edgehostd'])
    const load = await host.startLoad({ path: '/v1/edge-mgmt/edgehosts/current', token: session.token })
    const said = await installPackage(host, await repack(inject('deb'), `${version}+upgrade`))
    expect(said).not.toContain('For a Kubernetes cluster')
    expect(await host.output(['dpkg-query', '-W', '-f', '${Version}', 'edgehostd'])).toBe(
      `${version}+upgrade`,
    )
    expect(await host.property('ActiveState')).toBe('active')
    expect(await host.mainPid()).not.toBe(pid)
    expect(Object.keys((await load.stop()).outcomes)).toEqual(['200'])
    expect(await host.read('/etc/edgehostd/config.yaml')).toMatch(/# of this site/)
    const reply = await facts(session.token)
    expect(reply).toMatchObject({ status: 200, json: { metadata: { id: hostId, name: 'press-17' } } })
  })

  it('a removal stops the daemon, and keeps state and configuration', async () => {
    await host.output(['dpkg', '--remove', 'edgehostd'])
    expect((await host.http('GET', '/v1/ping')).status).toBe(0)
    expect(
      (await host.run(['systemctl', 'is-active', 'edgehostd.service', 'edgehostd.socket'])).stdout,
    ).not.toMatch(/^active/m)
    expect((await host.run(['pgrep', '-f', '/usr/lib/edgehostd'])).stdout).toBe('')
    expect((await host.run(['ls', '/usr/lib/edgehostd'])).exitCode).not.toBe(0)
    expect(await host.sh('ls /var/lib/edgehostd')).not.toBe('')
    expect(await host.read('/etc/edgehostd/config.yaml')).toMatch(/# of this site/)
  })

  it('the host is the same again after a new installation', async () => {
    await installPackage(host, await readFile(inject('deb')))
    await eventually(async () => {
      expect((await facts(session.token)).json.metadata.id).toBe(hostId)
    })
  })

  it('a purge removes the state', async () => {
    await host.output(['dpkg', '--purge', 'edgehostd'])
    const left = await host.run([
      'ls',
      '-d',
      '/var/lib/edgehostd',
      '/var/cache/edgehostd',
      '/run/edgehostd',
      '/etc/pam.d/edgehostd',
    ])
    expect(left.stdout).toBe('')
    // The package does not delete files of the administrator.
    expect(await host.sh('ls /etc/edgehostd/config.yaml 2> /dev/null || true')).toBe('')
    expect(await host.output(['systemctl', 'list-units', '--all', '--no-legend', 'edgehostd*'])).toBe('')
  })
})
