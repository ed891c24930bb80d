import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../support/kubernetes-kit.ts'
import { eventually } from './host/eventually.ts'
import {
  bootPlant,
  platformName,
  platformUrl,
  wantCluster,
  type Plant,
  type PlantHost,
} from './host/plant.ts'
import { output } from './host/process.ts'

const minutes = 60_000
const issueFile = '/run/issue.d/edgehostd.issue'

let plant: Plant
/** Connected by a fingerprint, by a file of authorities, and by a fingerprint again. */
let first: PlantHost
let second: PlantHost
let third: PlantHost
let fingerprint: string

beforeAll(async () => {
  plant = await bootPlant({ hosts: ['minbase', 'minbase', 'minbase'] })
  ;[first, second, third] = plant.hosts as [PlantHost, PlantHost, PlantHost]
  fingerprint = await plant.fingerprint()
})
afterAll(() => plant.unplug())

/** All that `platform connect` may write, with times; and the names of everything in the state folder but databases. */
const listing = (host: PlantHost) =>
  host.sh(`
    find /etc/edgehostd /var/lib/edgehostd/platform -printf '%p %m %s %T@\\n' 2> /dev/null | sort || true
    find /var/lib/edgehostd ! -name '*.db*' -printf '%p %m\\n' | sort`)

const device = async (name: string) => {
  const found = (await plant.devices()).find(({ metadata }) => metadata.name === name)
  if (!found) throw new Error(`the platform does not list ${name}`)
  return found
}
const namesOf = async (filter: string) =>
  (await plant.devices(filter)).map(({ metadata }) => metadata.name).sort()
const onConsole = (host: PlantHost) => host.read(issueFile)

const clusterCtl = (...args: readonly string[]) => plant.platform.run(['edgeplatformctl', 'cluster', ...args])
const shownClusters = async () => (await clusterCtl('list')).stdout

/** The calls of section 4.4 of the reference that the platform takes over. */
const clusterCalls = [
  ['POST', '/v1/edge-mgmt/cluster'],
  ['PATCH', '/v1/edge-mgmt/cluster'],
  ['PUT', '/v1/edge-mgmt/cluster'],
  ['PUT', '/v1/edge-mgmt/cluster/profiles'],
  ['PUT', '/v1/edge-mgmt/cluster/settings'],
  ['POST', '/v1/edge-mgmt/cluster/profiles/variables/validate'],
] as const

/** What each of these calls is answered. */
const answersOf = (host: PlantHost) =>
  Promise.all(
    clusterCalls.map(async ([method, path]) => {
      const { status, text } = await host.asRoot(method, path, {})
      return [status, (JSON.parse(text) as { code: string }).code] as const
    }),
  )

// The tests run in order: each one depends on the one before.
describe('a host that cannot be connected', () => {
  it('says why: an authority that did not sign, a name that the certificate has not, a token that is over; nothing is changed', async () => {
    const over = await plant.makeToken('--expiry', '+15s')
    const { items } = await plant.ask<{ items: { spec: { expiry: string } }[] }>('token', 'list')
    const end = Date.parse(items[0]!.spec.expiry)
    await output('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=another authority', '-keyout', '/dev/null', '-out', `${first.folder}/other.pem`],
    ])
    await first.write('/root/other.pem', await output('cat', [`${first.folder}/other.pem`]))
    await first.write('/root/ca.pem', await plant.platform.read('/var/lib/edgeplatform/tls/certificate.pem'))
    await first.write('/root/good', await plant.makeToken(), 0o600)
    await first.write('/root/over', over, 0o600)
    await eventually(() => expect(Date.now()).toBeGreaterThan(end), 30_000)
    const before = await listing(first)
    const pid = await first.mainPid()
    const tried = async (url: string, ...more: readonly string[]) => {
      const { exitCode, stderr } = await first.ctl('platform', 'connect', url, ...more)
      expect(exitCode, stderr).not.toBe(0)
      return stderr
    }
    const good = ['--token-file', '/root/good']

    const unsigned = await tried(platformUrl, ...good, '--ca-file', '/root/other.pem')
    expect(unsigned).toContain(
      `the file of --ca-file does not say who issued the certificate of ${platformName}`,
    )
    expect(unsigned).toContain(fingerprint)
    expect(unsigned).toContain('Nothing was changed')
    expect(await tried('https://other.plant.example', ...good, '--ca-file', '/root/ca.pem')).toMatch(
      /does not name other\.plant\.example; use a name that it has in the URL\. Nothing was changed/,
    )
    expect(await tried('https://nowhere.invalid', ...good)).toMatch(
      /the name nowhere\.invalid cannot be resolved .*Nothing was changed/,
    )
    expect(await tried(`${platformUrl}:444`, ...good)).toMatch(
      /cannot be reached \(ECONNREFUSED\).*Nothing was changed/,
    )
    expect(await tried(platformUrl, '--token-file', '/root/over', '--fingerprint', fingerprint)).toMatch(
      /refused the registration token: it is unknown, expired, .*Nothing was changed/,
    )

    expect(await listing(first)).toBe(before)
    expect(await first.mainPid()).toBe(pid)
    expect(await plant.devices()).toEqual([])
    expect(await first.link()).toMatchObject({ mode: 'airgap', registrationStatus: 'not applicable' })
  })
})

describe('three hosts that are connected with one command each', () => {
  it('a fingerprint or a file of authorities is enough, and the platform lists what they are', async () => {
    await second.write('/root/ca.pem', await plant.platform.read('/var/lib/edgeplatform/tls/certificate.pem'))
    const replies = await Promise.all([
      first.connect('--fingerprint', fingerprint),
      second.connect('--ca-file', '/root/ca.pem'),
      third.connect('--fingerprint', fingerprint),
    ])
    for (const { exitCode, stdout, stderr } of replies)
      expect([exitCode, stderr, stdout]).toEqual([
        ...[0, ''],
        expect.stringContaining(`This host is connected to ${platformUrl}`),
      ])
    // Heartbeats are written once a second.
    const devices = await eventually(async () => {
      const found = await plant.devices()
      for (const { status } of found) expect(status.health).toBeDefined()
      return found
    })
    expect(devices.map(({ metadata }) => metadata.name).sort()).toEqual(['edge-1', 'edge-2', 'edge-3'])
    for (const host of plant.hosts) {
      const { edgeHostUid } = await host.link()
      const found = devices.find(({ metadata }) => metadata.uid === edgeHostUid)
      expect(found).toMatchObject({
        spec: {
          device: {
            archType: 'amd64',
            os: { family: 'debian' },
            nics: [{ nicName: 'host0', ip: host.address }],
          },
          host: { hostAddress: host.address },
          service: { name: 'edgehostd' },
        },
        status: { health: { state: 'healthy', message: '' } },
      })
      const cores = Number(await host.sh('nproc --all'))
      const [, kilobytes] = /^MemTotal:\s+(\d+) kB/.exec(await host.sh('cat /proc/meminfo'))!
      expect(found!.spec.device.cpu!.cores).toBe(cores)
      expect(found!.spec.device.memory!.sizeInMB).toBeCloseTo(Number(kilobytes) / 1_024, -1)
      expect(await host.sh('ls /var/lib/edgehostd/platform')).toBe('host-key.pem\nregistration.json\n')
      expect(await onConsole(host)).toContain(`${platformUrl}: connected`)
    }
  })

  it('they are filtered by what they are, and by their health', async () => {
    expect(await namesOf(`spec.host.hostAddress=${second.address}`)).toEqual(['edge-2'])
    const all = ['edge-1', 'edge-2', 'edge-3']
    expect(await namesOf('spec.device.archType=amd64ANDstatus.health.state=healthy')).toEqual(all)
    expect(await namesOf('spec.device.archType=arm64')).toEqual([])
  })

  it("the calls that make and change clusters are the platform's, and all others work", async () => {
    expect(await answersOf(first)).toEqual(clusterCalls.map(() => [403, 'ManagedByPlatform']))
    for (const path of ['/v1/ping', '/v1/edge-mgmt/edgehosts/current', '/v1/edge-mgmt/settings'])
      expect((await first.asRoot('GET', path)).status).toBe(200)
  })

  it(
    'the platform sees within two minutes that a host got another NIC',
    { timeout: 2.5 * minutes },
    async () => {
      await output('nsenter', [
        ...['-t', String(first.leader), '-n', 'sh', '-euc'],
        `ip link add cell0 type veth peer name cell1
      ip address add 192.0.2.77/24 dev cell0; ip link set cell1 up; ip link set cell0 up`,
      ])
      await eventually(async () => {
        const { nics = [] } = (await device('edge-1')).spec.device
        expect(nics).toContainEqual(expect.objectContaining({ nicName: 'cell0', ip: '192.0.2.77' }))
      }, 2 * minutes)
    },
  )

  it('the sandbox of a connected host is that of another one, and its journal is quiet', async () => {
    const status = await first.read(`/proc/${await first.mainPid()}/status`)
    for (const line of [/^CapEff:\s+0+$/m, /^CapBnd:\s+0+$/m, /^NoNewPrivs:\s+1$/m])
      expect(status).toMatch(line)
    const rating = await first.output(['systemd-analyze', 'security', '--no-pager', 'edgehostd.service'])
    const overall = /Overall exposure level for edgehostd\.service: ([\d.]+)/.exec(rating)?.[1]
    expect(Number(overall), rating).toBeLessThanOrEqual(2)
    for (const host of [first, second]) {
      expect((await host.log()).filter(({ priority }) => priority <= 4)).toEqual([])
      const said = (await host.log())
        .map(({ msg }) => msg)
        .filter((msg) => /platform/i.test(msg) && !msg.endsWith(': ManagedByPlatform'))
      expect(said).toEqual([`Register this host on the platform ${platformUrl}`, 'connected to the platform'])
    }
  })
})

describe.skipIf(isKitMissing())('a cluster that its host refuses', () => {
  it('is shown with the reason, and when the host was last seen', { timeout: 2.5 * minutes }, async () => {
    await wantCluster(plant, third, 'line')
    await eventually(async () => {
      expect(await shownClusters()).toMatch(/^line .* edge-3 .* Refused +20\d\d-/m)
    }, 2 * minutes)
    expect(await clusterCtl('watch', 'line')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/the host has refused it/) as string,
    })
  })
})

it('the third host loses its network, which is looked at below', () => third.plug(false))

describe('a host that was deleted on the platform', () => {
  it(
    'says so: on its console, by its status, and in its journal once',
    { timeout: 2.5 * minutes },
    async () => {
      await plant.platform.output(['edgeplatformctl', 'host', 'delete', 'edge-2', '--yes'])
      expect(await namesOf('metadata.name=edge-2')).toEqual([])
      // With its next heartbeat.
      const link = await second.untilLink(
        ({ registrationStatus }) => registrationStatus === 'removed',
        2 * minutes,
      )
      expect(link).toMatchObject({ isConnected: false, cause: { kind: 'removed' } })
      await eventually(async () =>
        expect(await onConsole(second)).toContain(`${platformUrl}: this host was removed there`),
      )
      const { exitCode, stdout } = await second.ctl('platform', 'status')
      expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/Registration: removed/)])
      expect((await second.log()).filter(({ priority }) => priority <= 4).map(({ cause }) => cause)).toEqual([
        'removed',
      ])
    },
  )
})

describe('a disk that was copied', () => {
  it('both hosts are refused, and say that they exist twice', { timeout: 3 * minutes }, async () => {
    for (const host of [first, second])
      await host.output(['systemctl', 'stop', 'edgehostd.socket', 'edgehostd'])
    const rootOf = (host: PlantHost) => `/proc/${host.leader}/root`
    await second.sh('rm -r /var/lib/edgehostd /etc/edgehostd')
    for (const path of ['/var/lib/edgehostd', '/etc/edgehostd', '/etc/machine-id'])
      await output('cp', ['--archive', `${rootOf(first)}${path}`, `${rootOf(second)}${path}`])
    await first.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd'])
    await first.untilLink(({ isConnected }) => isConnected, 30_000)
    await second.output(['systemctl', 'start', 'edgehostd.socket', 'edgehostd'])
    await second.untilLink(({ registrationStatus }) => registrationStatus === 'duplicate', 30_000)
    // The other one hears of it with its next heartbeat.
    await first.untilLink(({ registrationStatus }) => registrationStatus === 'duplicate', 1.5 * minutes)
    expect((await device('edge-1')).status.isDuplicate).toBe(true)
    expect(await plant.platform.output(['edgeplatformctl', 'host', 'list'])).toMatch(
      /^edge-1 .*exists twice/m,
    )
    for (const host of [first, second]) {
      expect((await host.link()).cause?.kind).toBe('existsTwice')
      await eventually(async () =>
        expect(await onConsole(host)).toContain(`${platformUrl}: this host exists twice`),
      )
    }
  })

  it(
    'the copy gets an id and a key of its own, and the administrator lets the other one in',
    { timeout: 2 * minutes },
    async () => {
      await second.write('/etc/edgehostd/config.d/10-id.yaml', 'host: {id: edge-copy}\n')
      await second.sh('systemctl stop edgehostd; rm /var/lib/edgehostd/platform/host-key.pem')
      await plant.platform.output(['edgeplatformctl', 'host', 'accept', 'edge-1', '--yes'])
      await first.output(['systemctl', 'restart', 'edgehostd'])
      await first.untilLink(({ isConnected }) => isConnected, 30_000)
      expect((await device('edge-1')).status.isDuplicate).toBeUndefined()

      await second.output(['systemctl', 'start', 'edgehostd'])
      const again = await second.connect('--fingerprint', fingerprint)
      expect([again.exitCode, again.stderr]).toEqual([0, ''])
      expect((await device('edge-2')).spec.host.hostUid).toBe('edge-copy')
      for (const host of [first, second])
        expect(await host.link()).toMatchObject({ isConnected: true, registrationStatus: 'registered' })
    },
  )
})

describe('a host that is disconnected', () => {
  it('has its six calls back, and runs on', async () => {
    const { exitCode, stderr } = await first.ctl('platform', 'disconnect', '--yes')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(await first.property('ActiveState')).toBe('active')
    expect(await first.link()).toMatchObject({ mode: 'airgap', isConnected: false })
    for (const [status, code] of await answersOf(first)) {
      expect([400, 404]).toContain(status)
      expect(code).not.toBe('ManagedByPlatform')
    }
    expect(await first.sh('ls /etc/edgehostd/config.d')).toBe('')
    expect(await onConsole(first)).not.toContain('Platform')
    expect((await first.ctl('platform', 'status')).exitCode).toBe(0)
  })
})

describe('a host that had no network for three minutes', () => {
  it('is unhealthy', { timeout: 5 * minutes }, async () => {
    await eventually(async () => {
      expect(await namesOf('status.health.state=unhealthy')).toContain('edge-3')
    }, 4 * minutes)
    expect(await third.link()).toMatchObject({ isConnected: false, registrationStatus: 'registered' })
  })

  it.skipIf(isKitMissing())(
    'meanwhile each command of its cluster says how old it is, and none crosses a deletion',
    async () => {
      const until =
        /does not answer and was last seen at 20\d\d-.*: nothing happens there until it is seen again/
      const silent = /^line .* edge-3 +was Pending .*, silent /m
      expect(await shownClusters()).toMatch(silent)
      const applied = await clusterCtl('apply', 'line', '--yes')
      expect([applied.exitCode, applied.stderr]).toEqual([
        0,
        expect.stringMatching(new RegExp(`as number 2\\. .*${until.source}`)),
      ])
      // It ends, for the host may be silent for days.
      expect(await clusterCtl('watch', 'line')).toMatchObject({
        exitCode: 6,
        stderr: expect.stringMatching(
          /number 2 waits: .*edge-3 does not answer and was last seen at /,
        ) as string,
      })
      await plant.platform.output(['systemctl', 'restart', 'edgeplatformd'])
      expect(await shownClusters()).toMatch(silent)

      const deleted = await clusterCtl('delete', 'line', '--yes')
      expect([deleted.exitCode, deleted.stderr]).toEqual([0, expect.stringMatching(until)])
      expect(await clusterCtl('watch', 'line')).toMatchObject({ exitCode: 6 })
      const crossing = await clusterCtl('apply', 'line', '--yes')
      expect([crossing.exitCode, crossing.stderr]).toEqual([
        1,
        expect.stringMatching(/is to be deleted, as number 3, so it is not applied; .*--cancel-deletion/),
      ])
      await plant.platform.output(['systemctl', 'restart', 'edgeplatformd'])
      const cancelled = await clusterCtl('apply', 'line', '--cancel-deletion', '--yes')
      expect([cancelled.exitCode, cancelled.stderr]).toEqual([
        0,
        expect.stringMatching(new RegExp(`as number 4; its deletion is cancelled\\. .*${until.source}`)),
      ])
    },
  )

  it('is healthy again, and reports it', { timeout: 3 * minutes }, async () => {
    await third.plug(true)
    const link = await third.untilLink(({ isConnected }) => isConnected, 1.5 * minutes)
    expect(link.cause).toBeUndefined()
    await eventually(async () => {
      expect((await device('edge-3')).status).toMatchObject({ health: { state: 'healthy' } })
      const { items } = await plant.ask<{ items: { reason: string; message: string; severity: string }[] }>(
        ...(['event', 'list', '--filter', 'reason=PlatformUnreachable'] as const),
      )
      expect(items).toHaveLength(1)
      expect(items[0]).toMatchObject({
        severity: 'Warning',
        message: expect.stringMatching(/did not reach the platform for [3-6] minutes/) as string,
      })
    })
  })

  it.skipIf(isKitMissing())(
    'its cluster is still wanted, and is gone when it is deleted',
    { timeout: 5 * minutes },
    async () => {
      // The host has dealt with the last number, and with none before.
      await eventually(async () => {
        expect(await shownClusters()).toMatch(/^line .* edge-3 .* Refused +20\d\d-(?!.*silent)/m)
      }, 2 * minutes)
      const deleted = await clusterCtl('delete', 'line', '--yes')
      expect([deleted.exitCode, deleted.stderr]).toEqual([
        0,
        expect.stringMatching(/The host edge-3 gets it with its next heartbeat, and deletes the cluster/),
      ])
      await eventually(async () => expect(await shownClusters()).not.toMatch(/^line /m), 2 * minutes)
    },
  )
})
