import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { addTimeServiceAndAccount, servedBy, timesyncd } from './host/time-service.ts'

const right = 'right canary 1601'
const path = '/v1/edge-mgmt/edgehosts/current'

let host: Edgehostd
const here = (...args: readonly string[]) => host.run(['edgehostctl', ...args])

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await addTimeServiceAndAccount(host)
})
afterAll(() => host.unplug())

it('a host gets another name: kernel, files, cloud-init and certificate have it', async () => {
  await host.write('/etc/hosts', '127.0.0.1\tlocalhost\n127.0.1.1\tfirst-name.plant first-name mes\n')
  await host.sh('hostname first-name; mkdir -p /etc/cloud')
  await eventually(async () => expect((await here('host', 'hostname')).stdout).toBe('first-name\n'))
  // Over root's socket: each name has its certificate.
  const set = await here('host', 'hostname', 'line-7')
  expect(set, set.stderr).toMatchObject({ exitCode: 0, stdout: 'line-7\n' })
  expect((await host.output(['hostname'])).trim()).toBe('line-7')
  expect((await host.read('/etc/hostname')).trim()).toBe('line-7')
  expect(await host.read('/etc/hosts')).toBe('127.0.0.1\tlocalhost\n127.0.1.1\tline-7 mes\n')
  expect(await host.read('/etc/cloud/cloud.cfg.d/99-edgehostd-hostname.cfg')).toContain(
    'preserve_hostname: true',
  )
  await eventually(async () => {
    await host.trust()
    expect(new X509Certificate(readFileSync(host.cacert)).checkHost('line-7')).toBe('line-7')
  })
})

it('a name is set by command, twice as well as once, and a bad one changes nothing', async () => {
  for (let turn = 0; turn < 2; turn += 1)
    expect(await here('host', 'hostname', 'line-8.plant.example')).toMatchObject({
      exitCode: 0,
      stdout: 'line-8.plant.example\n',
    })
  expect(await host.read('/etc/hosts')).toContain('127.0.1.1\tline-8.plant.example line-8 mes\n')
  for (const bad of ['Line-8', '192.0.2.7', 'a_b', 'a;reboot', '../x'])
    expect([bad, (await here('host', 'hostname', bad)).exitCode]).toEqual([bad, 1])
  expect((await host.output(['hostname'])).trim()).toBe('line-8.plant.example')
})

it('without a system bus the name is set too', async () => {
  await host.sh('systemctl stop dbus.socket dbus.service; rm -f /run/dbus/system_bus_socket')
  const set = await here('host', 'hostname', 'line-9')
  expect(set, set.stderr).toMatchObject({ exitCode: 0 })
  await host.sh('systemctl start dbus.socket dbus.service')
  expect((await host.output(['hostname'])).trim()).toBe('line-9')
  expect((await host.read('/etc/hostname')).trim()).toBe('line-9')
})

it('without a time service the reason is said, and with one it takes the servers and gives them back', async () => {
  await host.sh(`systemctl stop ${timesyncd} 2> /dev/null || true`)
  const without = await here('host', 'time', '--server', '192.0.2.123')
  expect(without).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('time service') as string })
  await host.sh(`systemctl start ${timesyncd}`)
  const set = await here('host', 'time', '--server', '192.0.2.123', 'ntp.plant.example')
  expect(set, set.stderr).toMatchObject({ exitCode: 0 })
  expect(set.stdout).toMatch(/Set here: 192\.0\.2\.123\n\s+ntp\.plant\.example/)
  expect(await servedBy(host)).toBe('as 2 "192.0.2.123" "ntp.plant.example"')
  expect(await here('host', 'time', '--server', 'a b')).toMatchObject({ exitCode: 1 })
  await host.sh('rm -f /var/lib/edgehostd/host-time.json')
  const none = await here('host', 'time', '--server', 'none')
  expect(none, none.stderr).toMatchObject({ exitCode: 0 })
  expect(await servedBy(host)).toBe('as 1 "10.77.0.9"')
})

it('the audit trail has both, and other users may not', async () => {
  const trail = (await here('-o', 'json', 'audit', 'list', '--limit', '40')).stdout
  expect(trail).toContain('the name of the host is line-7, before first-name')
  expect(trail).toContain('the time servers of the host are 192.0.2.123, ntp.plant.example, before none')
  await host.addUser({ name: 'otto', password: right })
  await host.trust()
  const session = await host.openSession('otto', right)
  for (const [part, body] of [
    ['hostname', { hostName: 'line-1' }],
    ['time', { ntpServers: [] }],
  ] as const)
    expect((await host.http('PUT', `${path}/${part}`, { token: session.token, body })).status).toBe(403)
})
