import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

// A host where something other than a file is in the place of a file.

const right = 'right canary 0917'
const resolvConf = 'search plant.example\nnameserver 10.77.0.2\n'
const hasFuse = existsSync('/dev/fuse')
// mount(2) by its number: Perl's base has no word for it.
const mountCall = { x64: 165, arm64: 40 }[process.arch as string]

let host: Edgehostd
let token: string

/** As root asks on the host itself: a new address makes a new certificate. */
async function facts(): Promise<EdgeHostInfo> {
  const path = '/v1/edge-mgmt/edgehosts/current?refresh=true'
  return JSON.parse(await host.output(['edgehostctl', 'api', 'get', path])) as EdgeHostInfo
}

const dnsCondition = ({ status }: EdgeHostInfo) =>
  status.conditions?.find(({ type }) => type === 'dns')?.message

/** Stops the unit; it has 12 s before systemd kills it. */
async function stop(): Promise<{ tookMs: number; result: string }> {
  const startedAt = performance.now()
  await host.output(['systemctl', 'stop', 'edgehostd.socket', 'edgehostd.service'])
  const tookMs = performance.now() - startedAt
  return { tookMs, result: await host.property('Result') }
}

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine', nspawn: hasFuse ? ['--bind=/dev/fuse'] : [] })
  await host.addUser({ name: 'anna', password: right })
  // systemd-nspawn binds a file there.
  await host.sh('umount /etc/resolv.conf || true; rm -f /etc/resolv.conf')
  await host.write('/etc/resolv.conf', resolvConf)
  token = (await host.openSession('anna', right)).token
})
afterAll(() => host.unplug())

describe.each([
  ['a link to /dev/zero', 'ln -s /dev/zero "$1"', 'is a device'],
  ['a pipe that nothing writes into', 'mkfifo "$1"', 'is a named pipe'],
  ['300 MB', 'truncate -s 300000000 "$1"', 'has more than 1048576 bytes'],
  ['a folder', 'mkdir "$1"', 'is a folder'],
])('where /etc/resolv.conf is %s', (_, make, said) => {
  it('the daemon keeps running with a condition until the file is mended; stop and start take no longer than usual', async () => {
    const before = await host.mainPid()
    await host.sh(`rm -rf "$1"; ${make}`, '/etc/resolv.conf')
    expect(dnsCondition(await facts())).toContain(`/etc/resolv.conf ${said}`)
    expect(await host.mainPid()).toBe(before)

    const { tookMs, result } = await stop()
    expect(result).toBe('success')
    expect(tookMs).toBeLessThan(10_000)

    if (said === 'is a named pipe') {
      // Node opens it at each start and would wait for ever.
      expect((await host.run(['systemctl', 'start', 'edgehostd.service'])).exitCode).not.toBe(0)
      expect(await host.sh('journalctl -u edgehostd -p crit -o cat')).toContain(
        '/etc/resolv.conf is a named pipe, which the start would wait for: remove it with rm /etc/resolv.conf',
      )
      await host.sh('rm "$1"', '/etc/resolv.conf')
    }
    // The first read of it is a condition too. A restart by systemd may still be under way that began with the pipe, and fails.
    await eventually(() => host.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd.service']))
    if (said !== 'is a named pipe') expect(dnsCondition(await facts())).toContain(`/etc/resolv.conf ${said}`)

    await host.sh('rm -rf "$1"', '/etc/resolv.conf')
    await host.write('/etc/resolv.conf', resolvConf)
    const { status } = await facts()
    expect(status.conditions).toBeUndefined()
    expect(status.dns.nameservers).toEqual(['10.77.0.2'])
  })
})

describe.runIf(hasFuse && mountCall)('where /etc/resolv.conf lies on a file system that hangs', () => {
  it('the daemon answers, and a stop ends in time although a thread is blocked', async () => {
    const script = `open(F, "+<", "/dev/fuse") or die "$!"; my $options = "fd=" . fileno(F) . ",rootmode=40000,user_id=0,group_id=0";
      syscall(${mountCall}, my $a = "hung", my $b = "/srv/hung", my $c = "fuse.hung", 0, $options) == 0 or die "$!"; sleep`
    await host.sh('mkdir -p /srv/hung')
    await host.output(['systemd-run', '--unit', 'hung', 'perl', '-e', script])
    await eventually(async () => expect(await host.sh('cat /proc/1/mountinfo')).toContain('/srv/hung'))
    // With -f it would look at the target and hang itself.
    await host.sh('rm /etc/resolv.conf; ln -s /srv/hung/resolv.conf /etc/resolv.conf')
    expect(dnsCondition(await facts())).toContain('no answer within')
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
    const { tookMs, result } = await stop()
    expect(result).toBe('success')
    expect(tookMs).toBeLessThan(10_000)
    await host.output(['systemctl', 'stop', 'hung'])
    await host.sh('rm /etc/resolv.conf')
    await host.write('/etc/resolv.conf', resolvConf)
    // The port is free once the kernel has released the thread.
    await eventually(() => host.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd.service']))
  })
})

describe('other files of the daemon', () => {
  it('a pipe among the drop-ins is a problem that names its file, and does not block the start', async () => {
    await host.sh('mkfifo /etc/edgehostd/config.d/site.yaml')
    const { exitCode, stderr } = await host.run(['timeout', '20', 'edgehostd', '--check-config'])
    expect(stderr).toContain('/etc/edgehostd/config.d/site.yaml: is a named pipe, not a regular file')
    expect(exitCode).toBe(78)
    await host.sh('rm /etc/edgehostd/config.d/site.yaml')
  })

  it('a certificate that is an endless device is a problem that names its file', async () => {
    await host.write(
      '/etc/edgehostd/config.d/tls.yaml',
      'api: {tls: {certificateFile: /dev/zero, keyFile: /dev/zero}}\n',
    )
    const { exitCode, stderr } = await host.run(['timeout', '20', 'edgehostd', '--check-config'])
    expect(stderr).toContain('/dev/zero: it is a device, not a regular file')
    expect(exitCode).toBe(78)
    await host.sh('rm /etc/edgehostd/config.d/tls.yaml')
  })

  it('a secret that is a pipe stops the start with advice, and is made again once the pipe is moved away', async () => {
    await host.sh(`
      systemctl stop edgehostd.socket edgehostd.service
      mv /var/lib/edgehostd/secret /var/lib/edgehostd/secret.kept; mkfifo /var/lib/edgehostd/secret`)
    const { exitCode } = await host.run(['timeout', '60', 'systemctl', 'start', 'edgehostd.service'])
    expect(exitCode).toBe(1)
    await eventually(async () =>
      expect((await host.log()).map(({ msg }) => msg)).toContainEqual(
        expect.stringMatching(/secret is a named pipe, not a regular file: look at it with ls -lL/),
      ),
    )
    await host.sh(`
      rm /var/lib/edgehostd/secret; mv /var/lib/edgehostd/secret.kept /var/lib/edgehostd/secret
      systemctl restart edgehostd.socket edgehostd.service`)
    expect(await host.statusOf(token)).toBe(200)
  })
})
