import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installDebian } from '../e2e/host/debian-packages.ts'
import { eventually } from '../e2e/host/eventually.ts'
import { bootHost, type Host } from '../e2e/host/host.ts'
import { bootPlant, platformName, platformUrl, type Plant, type PlantHost } from '../e2e/host/plant.ts'
import { startSteppingProxy, type SteppingProxy } from '../e2e/host/stepping-proxy.ts'
import { createRandom } from '../support/random.ts'

// The short form is test/e2e/connected-hosts.test.ts.

const minutes = 60_000
const stateFolder = '/var/lib/edgehostd/platform'

let plant: Plant
let first: PlantHost
let fingerprint: string
/** A Squid as Debian configures it, and one that is made to open TLS. */
let squid: Host & { readonly address: string }
let opener: Host & { readonly address: string }

beforeAll(async () => {
  const others: Host[] = []
  try {
    for (const name of ['squid', 'squid-openssl']) {
      const machine = await bootHost({ lower: 'machine', wire: false })
      others.push(machine)
      await installDebian(machine, name)
    }
    plant = await bootPlant({ hosts: ['minbase', 'minbase', 'minbase'], others })
  } catch (error) {
    await Promise.all(others.map((machine) => machine.unplug()))
    throw error
  }
  first = plant.hosts[0]!
  ;[squid, opener] = plant.others as [typeof squid, typeof opener]
  fingerprint = await plant.fingerprint()
  for (const host of plant.hosts) await installDebian(host, 'libfaketime')
  for (const { sh } of plant.others) await sh(`echo "$1" ${platformName} >> /etc/hosts`, '10.78.0.1')
}, 15 * minutes)
afterAll(() => plant.unplug())

const connect = async (host: PlantHost, ...more: readonly string[]) => {
  const { exitCode, stderr } = await host.connect(...more)
  expect([exitCode, stderr]).toEqual([0, ''])
}

/** Requires that a host is connected, with one record on the platform that is not a double. */
async function expectOne(host: PlantHost, what: string): Promise<void> {
  const link = await host
    .untilLink(
      ({ isConnected, registrationStatus }) => isConnected && registrationStatus === 'registered',
      2 * minutes,
    )
    .catch((error: unknown) => {
      throw new Error(`${what}: not connected`, { cause: error })
    })
  // The platform may be starting again.
  const devices = await eventually(() => plant.devices(), 30_000)
  const { hostUid } = devices.find(({ metadata }) => metadata.uid === link.edgeHostUid)?.spec.host ?? {}
  const records = devices.filter(({ spec }) => spec.host.hostUid === hostUid)
  expect(records, what).toMatchObject([{ metadata: { uid: link.edgeHostUid } }])
  expect(records[0]!.status.isDuplicate, what).toBeUndefined()
}

async function deviceOf(uid: string) {
  const found = (await plant.devices()).find(({ metadata }) => metadata.uid === uid)
  if (!found) throw new Error(`the platform has no host ${uid}`)
  return found
}

/** Waits until every host has told the platform from now on that it is healthy. */
async function expectHeartbeats(): Promise<void> {
  const from = Date.now()
  await eventually(async () => {
    for (const { metadata, status } of await plant.devices()) {
      expect(status.health?.state, metadata.name).toBe('healthy')
      expect(Date.parse(status.health!.lastHeartbeatTimestamp), metadata.name).toBeGreaterThan(from)
    }
  }, 2 * minutes)
}

async function killPlatform(): Promise<void> {
  const pid = await plant.platform.property('MainPID')
  if (pid !== '0') await plant.platform.sh('kill -KILL "$1"', pid)
}
async function killHost(host: PlantHost): Promise<void> {
  const pid = await host.mainPid()
  if (pid !== 0) await host.sh('kill -KILL "$1"', String(pid))
}

/** What a drop-in of the unit says, so that the daemon sees another time; the clock is that of the kernel, which all hosts of a test share. */
const otherTime = (offset: string) => `[Service]
Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1
Environment=FAKETIME=${offset} FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1
`
const timeDropIn = '/etc/systemd/system/edgehostd.service.d/time.conf'

describe('kill -9 of either side', () => {
  let proxy: SteppingProxy

  beforeAll(async () => {
    await connect(first, '--fingerprint', fingerprint)
    proxy = await startSteppingProxy(first.leader, '10.78.0.1')
    await connect(first, '--fingerprint', fingerprint, '--proxy', proxy.url)
  })
  afterAll(async () => {
    await proxy.stop()
    await connect(first, '--fingerprint', fingerprint)
  })

  /** As after `platform connect`, before the daemon has sent anything. */
  const unregister = async () => {
    const { edgeHostUid } = await first.link()
    await first.output(['systemctl', 'stop', 'edgehostd'])
    await plant.platform.output(['edgeplatformctl', 'host', 'delete', edgeHostUid!, '--yes'])
    await first.sh(`rm -r ${stateFolder}; mkdir -m 700 ${stateFolder}`)
    await first.write(`${stateFolder}/registration-token`, await plant.makeToken(), 0o600)
  }
  const stop = () => first.output(['systemctl', 'stop', 'edgehostd'])

  it.each([
    ['registration and its first login', unregister, 8],
    ['login of a host that is registered', stop, 6],
  ])(
    'at each step of a %s: the host is connected in the end, with one record',
    { timeout: 25 * minutes },
    async (_, prepare, atLeast) => {
      await prepare()
      await proxy.hold()
      await first.output(['systemctl', 'start', 'edgehostd'])
      await expectOne(first, 'without a kill')
      const turns = await proxy.count()
      // TLS, and a request with its reply for each step.
      expect(turns).toBeGreaterThanOrEqual(atLeast)
      for (const victim of ['host', 'platform'])
        for (let turn = 1; turn <= turns; turn++) {
          await prepare()
          const { held } = await proxy.hold(turn)
          await first.output(['systemctl', 'start', 'edgehostd'])
          // The last turns are not always there: events come together or apart.
          const isHeld = await Promise.race([held.then(() => true), sleep(10_000, false)])
          if (isHeld) await (victim === 'host' ? killHost(first) : killPlatform())
          else expect(turn).toBeGreaterThan(turns - 3)
          proxy.release()
          await expectOne(first, `${victim} killed at turn ${turn} of ${turns}`)
        }
      expect(await plant.devices()).toHaveLength(1)
      await expectHeartbeats()
    },
  )

  it(
    'at 20 random moments: all hosts are connected in the end, each with one record',
    { timeout: 12 * minutes },
    async () => {
      const others = plant.hosts.slice(1)
      for (const host of others) await connect(host, '--fingerprint', fingerprint)
      const random = createRandom(2201)
      for (let kills = 0; kills < 20; kills++) {
        await sleep(random.below(12_000))
        await (random.isChosen(0.4) ? killPlatform() : killHost(random.pick(plant.hosts)))
      }
      for (const host of plant.hosts) await expectOne(host, 'after 20 kills')
      expect(await plant.devices()).toHaveLength(3)
      await expectHeartbeats()
    },
  )
})

describe('a clock of a host that is wrong', () => {
  const host = () => plant.hosts[1]!
  const ca = '/root/ca.pem'

  it.each(['-30m', '+30m', '-30y', '+30y'])(
    'by %s: with a fingerprint it is connected, tells its health, and its events have its own time',
    { timeout: 3 * minutes },
    async (offset) => {
      await connect(host(), '--fingerprint', fingerprint)
      await host().configureUnit('time', otherTime(offset))
      try {
        await expectOne(host(), offset)
        const { since } = (await host().link()) as unknown as { since: string }
        const aheadMinutes = (Date.parse(since) - Date.now()) / minutes
        const expected = Number.parseInt(offset) * (offset.endsWith('y') ? 365.2425 * 24 * 60 : 1)
        expect(Math.abs(aheadMinutes - expected)).toBeLessThan(offset.endsWith('y') ? 20 * 24 * 60 : 3)
        await eventually(async () => {
          const { edgeHostUid, events } = await host().link()
          expect(events).toEqual({ waiting: 0, dropped: 0 })
          expect((await deviceOf(edgeHostUid!)).status.health?.state).toBe('healthy')
        })
      } finally {
        await host().sh(`rm ${timeDropIn}; systemctl daemon-reload; systemctl restart edgehostd`)
      }
      await expectOne(host(), 'with the right clock again')
    },
  )

  it.each([
    ['-30y', 'clock', /not valid yet, and the clock of this host says 199\d.*check NTP/],
    ['+30y', 'certificateExpired', /has expired, and the clock of this host says 205\d/],
  ])(
    'by %s: with a file of authorities the cause is %s',
    { timeout: 3 * minutes },
    async (offset, kind, message) => {
      await host().write(ca, await plant.platform.read('/var/lib/edgeplatform/tls/certificate.pem'))
      await connect(host(), '--ca-file', ca)
      await host().configureUnit('time', otherTime(offset))
      try {
        const { cause } = await host().untilLink((link) => link.cause?.kind === kind)
        expect(cause!.message).toMatch(message)
      } finally {
        await host().sh(`rm ${timeDropIn}; systemctl daemon-reload; systemctl restart edgehostd`)
      }
      await expectOne(host(), 'with the right clock again')
    },
  )

  it('is said by platform connect, which continues', async () => {
    await host().write('/root/token', await plant.makeToken(), 0o600)
    const { exitCode, stdout } = await host().run([
      ...['env', 'LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1', 'FAKETIME=-30m'],
      ...['FAKETIME_DONT_FAKE_MONOTONIC=1', 'NO_FAKE_STAT=1', 'edgehostctl', 'platform', 'connect'],
      ...[platformUrl, '--token-file', '/root/token', '--fingerprint', fingerprint],
    ])
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(
        /warning: *clock: this clock is (29|30) min.* behind that of the platform; set up NTP/,
      ),
    ])
  })
})

describe('a proxy', () => {
  const host = () => plant.hosts[2]!
  const through = (machine: { readonly address: string }) => `http://${machine.address}:3128`
  const startSquid = async (machine: Host) => {
    await machine.output(['systemctl', 'restart', 'squid'])
    await eventually(() => machine.sh('ss -ltn | grep -q :3128'), 60_000)
  }
  const refused = async (...more: readonly string[]) => {
    const before = await host().link()
    const { exitCode, stderr } = await host().connect(...more)
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('Nothing was changed')
    expect((await host().link()).edgeHostUid).toBe(before.edgeHostUid)
    return stderr
  }

  beforeAll(async () => {
    const { exitCode } = await host().ctl('platform', 'disconnect', '--yes')
    expect(exitCode).toBe(0)
  })

  it(
    'Squid as Debian configures it lets no other machine through, and connect says so',
    { timeout: 3 * minutes },
    async () => {
      await startSquid(squid)
      expect(await refused('--fingerprint', fingerprint, '--proxy', through(squid))).toContain(
        `the proxy ${through(squid)} refused a connection to ${platformName} (status 403); allow CONNECT to port 443 there`,
      )
    },
  )

  it(
    'with the networks of the site allowed it lets CONNECT to port 443 alone through, which is enough',
    { timeout: 4 * minutes },
    async () => {
      await squid.sh(`sed -i 's/^#http_access allow localnet/http_access allow localnet/' /etc/squid/conf.d/debian.conf
      grep -q '^http_access allow localnet' /etc/squid/conf.d/debian.conf`)
      await startSquid(squid)
      const options = ['--token-file', '/root/token', '--fingerprint', fingerprint, '--proxy', through(squid)]
      const { stderr } = await host().ctl('platform', 'connect', `${platformUrl}:5443`, ...options)
      expect(stderr).toMatch(/\(status 403\); allow CONNECT to port 5443 there\. Nothing was changed/)
      await connect(host(), '--fingerprint', fingerprint, '--proxy', through(squid))
      await expectOne(host(), 'through Squid')
      expect((await host().link()).proxy).toBe(through(squid))
      expect(await squid.read('/var/log/squid/access.log')).toMatch(
        new RegExp(`TCP_TUNNEL/200 .*CONNECT ${platformName}:443`),
      )
    },
  )

  it(
    'a proxy that ends is named, and the host is connected again when it is back',
    { timeout: 4 * minutes },
    async () => {
      await squid.output(['systemctl', 'kill', '--signal=KILL', 'squid'])
      await squid.output(['systemctl', 'stop', 'squid'])
      const { cause } = await host().untilLink(({ isConnected }) => !isConnected, 1.5 * minutes)
      expect(cause).toMatchObject({
        kind: 'proxy',
        message: expect.stringContaining(through(squid)) as string,
      })
      await startSquid(squid)
      await expectOne(host(), 'when Squid is back')
    },
  )

  it(
    'Squid that opens TLS is named, whether the host trusts a fingerprint or a file',
    { timeout: 4 * minutes },
    async () => {
      await opener.sh(`
      cd /etc/squid
      openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=proxy of the site' -keyout key.pem -out ca.pem \\
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
      cat key.pem ca.pem > pair.pem; chown proxy: pair.pem
      rm -rf /var/spool/squid/ssl_db
      /usr/lib/squid/security_file_certgen -c -s /var/spool/squid/ssl_db -M 4MB
      chown -R proxy: /var/spool/squid/ssl_db
      sed -i 's/^http_port 3128$//' squid.conf
      cat > conf.d/open.conf <<'EOF'
http_access allow localnet
http_port 3128 ssl-bump cert=/etc/squid/pair.pem generate-host-certificates=on
sslcrtd_program /usr/lib/squid/security_file_certgen -s /var/spool/squid/ssl_db -M 4MB
ssl_bump bump all
sslproxy_cert_error allow all
EOF
      squid -k parse 2>&1`)
      await startSquid(opener)
      const said = new RegExp(`the proxy may open TLS: exempt ${platformName.replaceAll('.', '\\.')} there`)
      expect(await refused('--fingerprint', fingerprint, '--proxy', through(opener))).toMatch(said)
      await host().write(
        '/root/ca.pem',
        await plant.platform.read('/var/lib/edgeplatform/tls/certificate.pem'),
      )
      const unsigned = await refused('--ca-file', '/root/ca.pem', '--proxy', through(opener))
      expect(unsigned).toMatch(said)
      expect(unsigned).not.toContain(fingerprint)
    },
  )

  it('where a proxy begins to open TLS, the host says it', { timeout: 4 * minutes }, async () => {
    const dropIn = '/etc/edgehostd/config.d/50-platform.yaml'
    const good = await host().read(dropIn)
    await host().configure('50-platform', good.replace(through(squid), through(opener)))
    const { cause } = await host().untilLink((link) => link.cause !== undefined, 60_000)
    expect(cause?.kind).toBe('proxyOpensTls')
    expect((await host().ctl('platform', 'status')).exitCode).toBe(1)
    await host().configure('50-platform', good)
    await expectOne(host(), 'through the other proxy')
  })

  it(
    'a host that trusts the authority of such a proxy is connected through it: nothing that the proxy sees is of use',
    { timeout: 3 * minutes },
    async () => {
      await host().write('/root/site.pem', await opener.read('/etc/squid/ca.pem'))
      await connect(host(), '--ca-file', '/root/site.pem', '--proxy', through(opener))
      await expectOne(host(), 'through a proxy that opens TLS')
      expect(await opener.read('/var/log/squid/access.log')).toMatch(/PATCH https:\/\/\S+\/health/)
    },
  )
})

describe('a platform that was restored', () => {
  it(
    'from a backup of before the last logins has its hosts back; one that came later is connected anew',
    { timeout: 8 * minutes },
    async () => {
      const { platform } = plant
      const [kept, late] = [plant.hosts[0]!, plant.hosts[1]!]
      const { edgeHostUid: lateUid } = await late.link()
      await platform.output(['edgeplatformctl', 'host', 'delete', lateUid!, '--yes'])
      await late.sh(`systemctl stop edgehostd; rm -r ${stateFolder} /etc/edgehostd/config.d/50-platform.yaml`)
      await platform.write('/root/passphrase', 'correct horse battery staple\n', 0o600)
      const option = ['--passphrase-file', '/root/passphrase']
      await platform.output(['edgeplatformctl', 'backup', '/root/platform.backup', ...option])

      const generation = async () =>
        (JSON.parse(await kept.read(`${stateFolder}/registration.json`)) as { generation: number }).generation
      const before = await generation()
      for (let logins = 0; logins < 3; logins++) {
        await kept.output(['systemctl', 'restart', 'edgehostd'])
        await expectOne(kept, 'before the restore')
      }
      expect(await generation()).toBeGreaterThanOrEqual(before + 3)
      await late.output(['systemctl', 'start', 'edgehostd'])
      await connect(late, '--fingerprint', fingerprint)

      await platform.output(['systemctl', 'stop', 'edgeplatformd.socket', 'edgeplatformd.service'])
      await platform.output(['edgeplatformctl', 'restore', '/root/platform.backup', '--yes', ...option])
      await platform.output(['systemctl', 'start', 'edgeplatformd.socket', 'edgeplatformd.service'])
      expect(await plant.fingerprint()).toBe(fingerprint)

      // They hear of it with their next heartbeat.
      const restoredAt = Date.now()
      await eventually(async () => {
        const { edgeHostUid } = await kept.link()
        const { health } = (await deviceOf(edgeHostUid!)).status
        expect(Date.parse(health!.lastHeartbeatTimestamp)).toBeGreaterThan(restoredAt)
      }, 2 * minutes)
      for (const host of [kept, plant.hosts[2]!]) await expectOne(host, 'after the restore')
      const { cause } = await late.untilLink(({ isConnected }) => !isConnected, 1.5 * minutes)
      expect(cause?.kind).toBe('unknownHost')
      await connect(late, '--fingerprint', fingerprint)
      await expectOne(late, 'connected anew')
      expect(await plant.devices()).toHaveLength(3)
    },
  )
})
