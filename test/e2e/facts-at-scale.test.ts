import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

// A host as full as a Kubernetes node: pods' interfaces and mounts by the hundred, and a file system that hangs.

const right = 'right canary 0902'
const path = '/v1/edge-mgmt/edgehosts/current'
const hasFuse = existsSync('/dev/fuse')
// mount(2) by its number: Perl's base has no word for it.
const mountCall = { x64: 165, arm64: 40 }[process.arch as string]

let host: Edgehostd
let token: string
let empty: EdgeHostInfo

async function facts(query = ''): Promise<EdgeHostInfo> {
  const { status, json } = await host.http('GET', `${path}${query}`, { token })
  expect(status).toBe(200)
  return json as EdgeHostInfo
}
const nicNames = ({ spec }: EdgeHostInfo) => spec.networkInfo.map(({ nicName }) => nicName)
const withoutPassing = ({ spec, status }: EdgeHostInfo) =>
  JSON.stringify([spec, status], (key, value: unknown) => (/^(used|free)Space$/.test(key) ? 0 : value))

beforeAll(async () => {
  host = await bootEdgehostd({
    lower: 'machine',
    nspawn: ['--bind-ro=/:/mnt/machine:norbind', ...(hasFuse ? ['--bind=/dev/fuse'] : [])],
  })
  await host.addUser({ name: 'anna', password: right })
  token = (await host.openSession('anna', right)).token
  // A NIC is what has hardware; in a container whatever has an address. The wire to the clients is one.
  empty = await facts('?refresh=true')
  await host.sh(`
    for i in $(seq 300); do echo "link add veth$i type veth peer name pod$i"; done | ip -batch -
    mkdir -p /var/lib/kubelet/pods /srv/here
    for i in $(seq 250); do
      folder=/var/lib/kubelet/pods/$i/volume; mkdir -p $folder/token $folder/data
      mount -t tmpfs tmpfs $folder/token
      mount --bind /srv/here $folder/data
    done`)
})
afterAll(() => host.unplug())

describe('a host with 300 veth pairs and 500 mounts of pods', () => {
  it('interfaces and mounts of pods do not change the facts', async () => {
    expect(Number(await host.sh('ip -o link show type veth | wc -l'))).toBeGreaterThanOrEqual(600)
    expect(Number(await host.sh('grep -c /var/lib/kubelet /proc/1/mountinfo'))).toBeGreaterThanOrEqual(500)
    expect(withoutPassing(await facts('?refresh=true'))).toBe(withoutPassing(empty))
  })

  it('other requests are answered at once during a reading of the facts', async () => {
    const looking = Array.from({ length: 5 }, () => facts('?refresh=true'))
    const startedAt = performance.now()
    expect((await host.http('GET', '/v1/ping')).status).toBe(200)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    await Promise.all(looking)
  })

  it('a bridge is shown within two seconds of its address, without a refresh', async () => {
    await host.sh('ip link add br7 type bridge; ip link set br7 up; ip address add 203.0.113.7/29 dev br7')
    const startedAt = performance.now()
    await eventually(async () => {
      await host.trust()
      expect((await facts()).spec.networkInfo).toContainEqual(
        expect.objectContaining({ nicName: 'br7', ip: '203.0.113.7', subnet: '255.255.255.248' }),
      )
    })
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })

  it('the primary address of a bridge is shown, and the next one when it is removed', async () => {
    await host.sh('ip address add 203.0.113.6/29 dev br7')
    const ip = async () =>
      (await facts('?refresh=true')).spec.networkInfo.find(({ nicName }) => nicName === 'br7')?.ip
    await host.trust()
    expect(await ip()).toBe('203.0.113.7')
    await host.sh('sysctl -q net.ipv4.conf.br7.promote_secondaries=1; ip address del 203.0.113.7/29 dev br7')
    await eventually(async () => {
      await host.trust()
      expect(await ip()).toBe('203.0.113.6')
    })
  })

  it('a removed bridge is no longer shown', async () => {
    await host.output(['ip', 'link', 'del', 'br7'])
    await eventually(async () => {
      await host.trust()
      expect(nicNames(await facts())).not.toContain('br7')
    })
  })

  // Kinds that this kernel may not have; the virtual machine of machine.test.ts has them all.
  it.each(['bond', 'vlan', 'dummy'])(
    'a %s is shown or hidden as documented, where the kernel has one',
    async (kind) => {
      const name = kind === 'dummy' ? 'kube-ipvs0' : `${kind}7`
      const make = kind === 'vlan' ? `link host0 name ${name} type vlan id 7` : `name ${name} type ${kind}`
      const made = await host.run(['ip', 'link', 'add', ...make.split(' ')])
      if (made.exitCode !== 0) {
        expect(made.stderr).toMatch(/Unknown device type|not supported/)
        return
      }
      await host.sh(`ip address add 203.0.113.17/29 dev ${name}; ip link set ${name} up`)
      const names = nicNames(await facts('?refresh=true'))
      if (kind === 'dummy') expect(names).not.toContain(name)
      else expect(names).toContain(name)
      await host.output(['ip', 'link', 'del', name])
    },
  )

  it('a file system is shown within ten seconds, without a refresh', async () => {
    const partitions = (info: EdgeHostInfo) => info.spec.hardwareSpec.disks.flatMap((disk) => disk.partitions)
    await host.sh('mkdir -p /srv/moved; mount --bind /mnt/machine /srv/moved; umount /mnt/machine')
    await eventually(async () => {
      await host.trust()
      const found = partitions(await facts()).find(({ mountPoint }) => mountPoint === '/srv/moved')
      expect(found?.totalSpace).toBeGreaterThan(0)
    }, 10_000)
  })
})

describe.runIf(hasFuse && mountCall)('a FUSE file system that hangs', () => {
  it('a FUSE file system that hangs is not read, and delays no other fact', async () => {
    const script = `open(F, "+<", "/dev/fuse") or die "$!"; my $options = "fd=" . fileno(F) . ",rootmode=40000,user_id=0,group_id=0";
      syscall(${mountCall}, my $a = "hung", my $b = "/srv/hung", my $c = "fuse.hung", 0, $options) == 0 or die "$!"; sleep`
    await host.sh('mkdir -p /srv/hung')
    await host.output(['systemd-run', '--unit', 'hung', 'perl', '-e', script])
    await eventually(async () => expect(await host.sh('cat /proc/1/mountinfo')).toContain('/srv/hung'))
    // The file system hangs.
    const late = await host.run(['timeout', '--signal=KILL', '1', 'stat', '-f', '/srv/hung'])
    expect(late.exitCode).toBeUndefined()
    const startedAt = performance.now()
    const info = await facts('?refresh=true')
    expect(performance.now() - startedAt).toBeLessThan(2_000)
    expect(info.status.conditions).toBeUndefined()
    expect(JSON.stringify(info)).not.toContain('/srv/hung')
    await host.output(['systemctl', 'stop', 'hung'])
  })
})

describe('at rest', () => {
  it('the daemon starts no more than two programs a minute', { timeout: 300_000 }, async () => {
    await host.configure('debug', 'log:\n  level: debug\n')
    // Except the one that notifies the watchdog.
    const started = async () =>
      (await host.log())
        .filter(({ msg, program }) => msg === 'a program is started' && program !== 'systemd-notify')
        .map(({ program }) => program)
    // The first reading and the watches belong to the start: ip is asked for routes of other tables, since this host has no default route,
    // and watches.
    await eventually(async () =>
      expect((await started()).filter((program) => program === 'ip').length).toBeGreaterThan(1),
    )
    const before = (await started()).length
    await new Promise((resolve) => setTimeout(resolve, 60_000))
    const programs = (await started()).slice(before)
    expect(programs.length, programs.join()).toBeLessThanOrEqual(2)
    await host.sh('rm /etc/edgehostd/config.d/debug.yaml; systemctl restart edgehostd')
  })

  it('the journal has neither warnings nor errors of the daemon', async () => {
    expect((await host.log()).filter(({ priority }) => priority <= 4)).toEqual([])
  })
})
