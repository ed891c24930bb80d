import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askProperties } from '../../src/host/services.ts'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

// The installed unit, in its sandbox, and systemd's own resolver and time service.

let host: Edgehostd

/** As root asks on the host itself. Without `refresh` nothing is read for it. */
async function facts(query = ''): Promise<EdgeHostInfo> {
  const path = `/v1/edge-mgmt/edgehosts/current${query}`
  return JSON.parse(await host.output(['edgehostctl', 'api', 'get', path])) as EdgeHostInfo
}
const serversOf = ({ spec }: EdgeHostInfo, name: string) =>
  spec.networkInfo.find(({ nicName }) => nicName === name)?.dns

/** Waits until the facts show it, at most five seconds after the change. */
async function isSoon(change: () => Promise<unknown>, says: (info: EdgeHostInfo) => void): Promise<void> {
  await change()
  const changedAt = performance.now()
  await eventually(async () => says(await facts()))
  expect(performance.now() - changedAt).toBeLessThan(5_000)
}
const timesyncdIs = async () =>
  (await host.run(['systemctl', 'is-active', 'systemd-timesyncd'])).stdout.trim()
const configureTime = (lines: string) =>
  host.write('/etc/systemd/timesyncd.conf.d/site.conf', `[Time]\n${lines}\n`)

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'services' })
  // timesyncd keeps away from containers and may not set this clock; what it would ask is all that matters here.
  await host.write(
    '/etc/systemd/system/systemd-timesyncd.service.d/container.conf',
    '[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\nExecStart=\nExecStart=/lib/systemd/systemd-timesyncd\n',
  )
  // An address needs no lookup, which would delay a stop.
  await configureTime('NTP=10.77.0.2\nFallbackNTP=10.77.0.3')
  await host.write('/etc/systemd/resolved.conf.d/site.conf', '[Resolve]\nDNS=10.77.0.2 fe80::1%host0\n')
  await host.sh('systemctl daemon-reload')
})
afterAll(() => host.unplug())

describe('systemd-resolved', () => {
  const shown = async (link: string) =>
    (await host.output(['resolvectl', 'dns', link]))
      .trim()
      .replace(/^.*?\): ?/, '')
      .split(' ')

  it('systemd-resolved is asked within five seconds of its start', () =>
    isSoon(
      () => host.sh('systemctl start systemd-resolved; resolvectl dns host0 10.77.0.4 2001:db8::4'),
      (info) => expect(serversOf(info, 'host0')).toEqual(['10.77.0.4', '2001:db8::4']),
    ))

  it('the servers of a link are those of resolvectl within five seconds of a change', async () => {
    const servers = ['10.77.0.5', '2001:db8::5']
    await isSoon(
      () => host.output(['resolvectl', 'dns', 'host0', ...servers]),
      (info) => expect(serversOf(info, 'host0')).toEqual(servers),
    )
    expect(await shown('host0')).toEqual(servers)
    expect((await facts()).status.conditions).toBeUndefined()
    await eventually(async () =>
      expect((await facts()).status.dns.nameservers).toEqual(['10.77.0.2', 'fe80::1%2', ...servers]),
    )
  })

  it('a stop of systemd-resolved is noticed', async () => {
    await isSoon(
      () => host.output(['systemctl', 'stop', 'systemd-resolved']),
      (info) => expect(serversOf(info, 'host0')).not.toContain('10.77.0.5'),
    )
    expect((await facts()).status.conditions).toBeUndefined()
  })
})

describe('systemd-timesyncd', () => {
  it('systemd-timesyncd is asked within five seconds of its start', async () => {
    expect((await facts()).status.ntp.pollIntervalMaxSec).toBeUndefined()
    await isSoon(
      () => host.output(['systemctl', 'start', 'systemd-timesyncd']),
      ({ status }) =>
        expect(status.ntp).toMatchObject({
          ntpServers: ['10.77.0.2'],
          fallbackNtpServers: ['10.77.0.3'],
          pollIntervalMaxSec: '2048',
        }),
    )
    expect((await facts()).status.conditions).toBeUndefined()
  })

  it('systemd-timesyncd is asked within five seconds of a restart with other servers', async () => {
    await configureTime('NTP=10.77.0.6')
    await isSoon(
      () => host.output(['systemctl', 'restart', 'systemd-timesyncd']),
      ({ status }) => expect(status.ntp.ntpServers).toEqual(['10.77.0.6']),
    )
  })

  it('systemd-timesyncd is asked for servers that a program gave it when all facts are read', async () => {
    const manager = ['org.freedesktop.timesync1', '/org/freedesktop/timesync1']
    const set = ['org.freedesktop.timesync1.Manager', 'SetRuntimeNTPServers', 'as', '1', '10.77.0.7']
    await host.output(['busctl', 'call', ...manager, ...set])
    expect((await facts('?refresh=true')).status.ntp.ntpServers).toEqual(['10.77.0.7', '10.77.0.6'])
  })

  it('systemd-timesyncd stays stopped, and its file is read, while all facts are read repeatedly', async () => {
    await isSoon(
      () => host.output(['systemctl', 'stop', 'systemd-timesyncd']),
      ({ status }) => expect(status.ntp.pollIntervalMaxSec).toBeUndefined(),
    )
    for (let round = 0; round < 5; round += 1) {
      const { status } = await facts('?refresh=true')
      expect(status.ntp.ntpServers).toEqual(['10.77.0.6'])
      expect(status.conditions).toBeUndefined()
      expect(await timesyncdIs()).toBe('inactive')
    }
  })

  it('systemd-timesyncd is not started by a question after its stop', async () => {
    const manager = {
      service: 'org.freedesktop.timesync1',
      path: '/org/freedesktop/timesync1',
      interface: 'org.freedesktop.timesync1.Manager',
    }
    const run = (program: string, args: readonly string[]) => host.run([program, ...args])
    expect(await askProperties({ run }, manager)).toEqual({
      problem: expect.stringContaining('Name "org.freedesktop.timesync1" does not exist') as string,
    })
    expect(await timesyncdIs()).toBe('inactive')
    const names = [manager.service, manager.path, manager.interface, 'SystemNTPServers']
    await host.output(['busctl', '--auto-start=no', 'get-property', ...names])
    expect(await timesyncdIs()).toBe('active')
  })
})
