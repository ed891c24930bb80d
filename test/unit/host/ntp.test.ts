import { describe, expect, it } from 'vitest'
import {
  hasChosenSource,
  parseChronySources,
  readNtp,
  ntpOfProperties,
  parseTimesyncdConf,
} from '../../../src/host/time/ntp.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import {
  busctlLine,
  timesyncNeverOutput,
  timesyncOutput,
  unknownService,
} from '../../fixtures/host/busctl.ts'
import { programs, refusal } from '../../fixtures/host/edges.ts'
import { machine } from '../../fixtures/host/tree.ts'

const running = (unit: string) => `/sys/fs/cgroup/system.slice/${unit}/cgroup.events = populated 1\n`
const read = async (changes: string, runner = programs().runner) => readNtp(machine('', changes), runner)

describe('time servers of timesyncd', () => {
  const line = busctlLine('/org/freedesktop/timesync1')
  const socket = '/run/dbus/system_bus_socket = \n'
  const runs = `${running('systemd-timesyncd.service')}${socket}`
  const unit = '/usr/lib/systemd/system/systemd-timesyncd.service = [Unit]\n'

  it('time servers come from a running timesyncd, with the figures that only its file states', async () => {
    const { runner, ran } = programs({ [line]: timesyncOutput })
    const conf = '/etc/systemd/timesyncd.conf <<\n[Time]\nNTP=ntp.shop.example\nSaveIntervalSec=2min\n>>\n'
    expect(await read(runs + conf, runner)).toEqual({
      ntp: {
        fallbackNtpServers: ['f.example'],
        ntpServers: ['r.example', '192.0.2.9', 'a.example'],
        pollIntervalMaxSec: '2048',
        pollIntervalMinSec: '32',
        rootDistanceMaxSec: '5',
        saveIntervalSec: '120',
      },
      problems: [],
    })
    expect(ran).toEqual([line])
  })

  it('a poll figure of infinity is left out', async () => {
    const { runner } = programs({ [line]: timesyncNeverOutput })
    const { ntp } = await read(runs, runner)
    expect(ntp).toMatchObject({ pollIntervalMaxSec: '2048' })
    expect(ntp).not.toHaveProperty('rootDistanceMaxSec')
  })

  it('properties that timesyncd does not have, or of another type, give no servers and no figures', () => {
    const odd = { type: 'u', data: 5_000_000 }
    const properties = {
      LinkNTPServers: { type: 'as', data: [] },
      PollIntervalMinUSec: odd,
      SystemNTPServers: odd,
    }
    expect(ntpOfProperties(properties)).toEqual({ fallbackNtpServers: [], ntpServers: [] })
  })

  it('a poll figure may be a fraction of a second', () => {
    const properties = { RootDistanceMaxUSec: { type: 't', data: 5_500_001 } }
    expect(ntpOfProperties(properties)).toMatchObject({ rootDistanceMaxSec: '5.500001' })
  })

  it.each(['50-site.conf/', '50-site.conf -> 50-site.conf\n'])(
    'a drop-in that is no file (%s) is named, and the servers of the others are shown',
    async (dropIn) => {
      const folder = '/etc/systemd/timesyncd.conf.d'
      const other = `${folder}/60-more.conf <<\n[Time]\nNTP=d.example\n>>\n`
      const { ntp, problems } = await read(`${unit}${folder}/${dropIn}\n${other}`)
      expect(ntp.ntpServers).toEqual(['d.example'])
      expect(problems).toEqual([expect.stringContaining(`${folder}/50-site.conf is a `)])
    },
  )

  it('a folder in place of timesyncd.conf is named, and the drop-ins are read', async () => {
    const dropIn = '/etc/systemd/timesyncd.conf.d/a.conf <<\n[Time]\nNTP=d.example\n>>\n'
    expect(await read(`${unit}/etc/systemd/timesyncd.conf/\n${dropIn}`)).toEqual({
      ntp: { fallbackNtpServers: [], ntpServers: ['d.example'] },
      problems: ['/etc/systemd/timesyncd.conf is a folder, not a regular file'],
    })
  })

  it('a drop-in that leads to no file is a missing one, as it is to timesyncd', async () => {
    const dropIn = '/etc/systemd/timesyncd.conf.d/a.conf -> /nowhere\n'
    expect(await read(`${unit}${dropIn}`)).toEqual({
      ntp: { fallbackNtpServers: [], ntpServers: [] },
      problems: [],
    })
  })

  it.each([
    ['NTP=ntp1.plant.example \\\n    ntp2.plant.example\n', ['ntp1.plant.example', 'ntp2.plant.example']],
    ['NTP=a\\\n# b \\\n; c\n d\nNTP=e\n', ['a', 'd', 'e']],
    ['NTP=a \\\n\nNTP=b\n', ['a', 'b']],
    ['NTP=a \\', ['a']],
  ])('a line that ends with a backslash goes on in the next: %j', (text, servers) => {
    expect(parseTimesyncdConf(`[Time]\n${text}`).ntpServers).toEqual(servers)
  })

  it.each([
    ['a comment that ends with a backslash', '#NTP=a \\\nNTP=b\n', ['b']],
    ['a comment within a line that goes on', 'NTP=a \\\n# x \\\n  b\n', ['a', 'b']],
    ['line ends of Windows', 'NTP=a \\\r\n b\r\n', ['a', 'b']],
    ['a backslash that is escaped', 'NTP=a\\\\\nFallbackNTP=b\n', ['a\\\\']],
    ['a line that goes on to a section', 'NTP=a \\\n[Resolve]\nNTP=b\n', ['a', '[Resolve]', 'b']],
    ['another section', 'NTP=a\n[Resolve]\nNTP=b\n[Time] \nNTP=c\n', ['a', 'c']],
    ['a section in other letters', 'NTP=a\n[time]\nNTP=b\n', ['a']],
  ])("timesyncd's file with %s is read as systemd does", (_, text, servers) => {
    expect(parseTimesyncdConf(`[Time]\n${text}`).ntpServers).toEqual(servers)
  })

  it("timesyncd's files are read one by one: a line that goes on ends with its file, and none begins within a section", () => {
    expect(parseTimesyncdConf('\ufeff[Time]\nNTP=a \\', 'NTP=x\n[Time]\nNTP=b').ntpServers).toEqual([
      'a',
      'b',
    ])
  })

  it("time servers come from timesyncd's file and drop-ins, without a question, where it does not run", async () => {
    const { runner, ran } = programs({ [line]: timesyncOutput })
    const files = `${socket}${unit}/etc/systemd/timesyncd.conf <<
[Time]
NTP=old.example
#FallbackNTP=0.debian.pool.ntp.org
PollIntervalMinSec=64
PollIntervalMaxSec=1h
>>
/usr/lib/systemd/timesyncd.conf.d/50-site.conf <<
NTP=hidden.example
>>
/etc/systemd/timesyncd.conf.d/50-site.conf <<
[Time]
NTP=
NTP=a.example b.example
FallbackNTP=c.example
ConnectionRetrySec=1min 30s
>>
/run/systemd/timesyncd.conf.d/60-more.conf <<
[Time]
NTP=d.example
PollIntervalMinSec=128
PollIntervalMaxSec=soon
>>
`
    expect(await read(files, runner)).toEqual({
      ntp: {
        connectionRetrySec: '90',
        fallbackNtpServers: ['c.example'],
        ntpServers: ['a.example', 'b.example', 'd.example'],
        pollIntervalMaxSec: '3600',
        pollIntervalMinSec: '128',
      },
      problems: [],
    })
    expect(ran).toEqual([])
  })

  it.each([
    ['is not on the bus', refusal(unknownService), `${line}: exit code 1 (${unknownService.trim()})`],
    [
      'says something else',
      'null\n',
      'busctl: the answer of org.freedesktop.timesync1 is not of the type a{sv}',
    ],
    [
      'says half',
      '{"type":"a{sv}",',
      'busctl: the answer of org.freedesktop.timesync1 is not of the type a{sv}',
    ],
    [
      'hangs',
      () => Promise.reject(new CommandFailed('busctl', 'timed-out', '2400 ms')),
      'busctl: timed-out (2400 ms)',
    ],
  ])("time servers come from timesyncd's file, with a problem, when it %s", async (_, output, problem) => {
    const { runner } = programs({ [line]: output })
    expect(await read(`${runs}/etc/systemd/timesyncd.conf <<\n[Time]\nNTP=a.example\n>>\n`, runner)).toEqual({
      ntp: { fallbackNtpServers: [], ntpServers: ['a.example'] },
      problems: [problem],
    })
  })

  it("time servers come from timesyncd's file, with a problem, on a machine without busctl", async () => {
    expect(await read(`${runs}/etc/systemd/timesyncd.conf <<\n[Time]\nNTP=a.example\n>>\n`)).toEqual({
      ntp: { fallbackNtpServers: [], ntpServers: ['a.example'] },
      problems: ['busctl: not-started (ENOENT)'],
    })
  })

  it("time servers come from timesyncd's file where there is no system bus", async () => {
    const { runner, ran } = programs({ [line]: timesyncOutput })
    const files = `${running('systemd-timesyncd.service')}/etc/systemd/timesyncd.conf <<\n[Time]\nNTP=a.example\n>>\n`
    expect(await read(files, runner)).toMatchObject({ ntp: { ntpServers: ['a.example'] }, problems: [] })
    expect(ran).toEqual([])
  })

  it("poll figures are those that timesyncd's file states, without defaults", () => {
    expect(parseTimesyncdConf('[Time]\nRootDistanceMaxSec=500ms\n#SaveIntervalSec=60\nFoo=5\n')).toEqual({
      fallbackNtpServers: [],
      ntpServers: [],
      rootDistanceMaxSec: '0.5',
    })
  })
})

describe('time servers of chrony', () => {
  // Captured from chronyc 4.3 and chronyd -x with these lines of configuration: a server, a pool of three, two
  // addresses, a peer, a reference clock, and a pool whose name has no address.
  const sourcesByName = `#,?,GPS,0,4,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,ntp.shop.example,0,4,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,pool.shop.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,pool.shop.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,pool.shop.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,192.0.2.40,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
=,?,peer.shop.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,unresolved.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,unresolved.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
`
  const sourcesByAddress = `#,?,GPS,0,4,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,192.0.2.10,0,4,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,ID#0000000002,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,?,2001:db8::30,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
=,?,192.0.2.50,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
`
  const byName = 'chronyc -N -c sources -a'
  const byAddress = 'chronyc -n -c sources -a'
  const conf = '/etc/chrony/chrony.conf = server conf.example minpoll 4 maxpoll 6\n'
  /** A chronyc that ends like this for every command without a given answer. */
  const failing = (stdout: string, stderr: string, answers: Readonly<Record<string, string>> = {}) => {
    const ran: string[] = []
    const runner: CommandRunner = {
      run: (program, args) => {
        const line = [program, ...args].join(' ')
        ran.push(line)
        const answer = answers[line]
        const result =
          answer === undefined ? { exitCode: 1, stdout, stderr } : { exitCode: 0, stdout: answer, stderr: '' }
        return Promise.resolve({ ...result })
      },
    }
    return { runner, ran }
  }

  it.each(['chrony.service', 'chronyd.service'])(
    'time servers come from chronyd while %s runs',
    async (unit) => {
      const { runner, ran } = programs({ [byName]: sourcesByName })
      expect(await read(running(unit) + conf, runner)).toEqual({
        ntp: {
          fallbackNtpServers: [],
          ntpServers: [
            'ntp.shop.example',
            'pool.shop.example',
            '192.0.2.40',
            'peer.shop.example',
            'unresolved.example',
          ],
          pollIntervalMaxSec: '64',
          pollIntervalMinSec: '16',
        },
        problems: [],
      })
      expect(ran).toEqual([byName])
    },
  )

  it("chrony's time servers are addresses where chronyc has no option for names", async () => {
    const { runner, ran } = failing('Usage: chronyc [OPTION]...\n', "chronyc: invalid option -- 'N'\n", {
      [byAddress]: sourcesByAddress,
    })
    const { ntp, problems } = await read(running('chrony.service') + conf, runner)
    expect([ntp.ntpServers, problems]).toEqual([['192.0.2.10', '2001:db8::30', '192.0.2.50'], []])
    expect(ran).toEqual([byName, byAddress])
  })

  it("time servers come from chrony's configuration, with a problem, when chronyd does not answer", async () => {
    const { runner, ran } = failing('506 Cannot talk to daemon\n', '')
    expect(await read(running('chrony.service') + conf, runner)).toEqual({
      ntp: {
        fallbackNtpServers: [],
        ntpServers: ['conf.example'],
        pollIntervalMaxSec: '64',
        pollIntervalMinSec: '16',
      },
      problems: ['chronyc -N -c sources -a: exit code 1 (506 Cannot talk to daemon)'],
    })
    expect(ran).toEqual([byName])
  })

  it('chrony with only a reference clock has no time servers', () => {
    expect(parseChronySources('#,*,GPS,0,4,377,12,0.000000001,0.000000001,0.000000002\n')).toEqual([])
  })

  it.each([
    ['^,?,192.0.2.10,0,6,0,4294967295,0.0,0.0,0.0\n', false],
    ['^,-,a.example,2,6,377,12,0.1,0.1,0.1\n^,*,b.example,2,6,377,12,0.1,0.1,0.1\n', true],
    ['#,*,GPS,0,4,377,12,0.000000001,0.000000001,0.000000002\n', true],
    ['', false],
  ])('the clock is kept by a source that chrony has chosen: %j', (text, isChosen) => {
    expect(hasChosenSource(text)).toBe(isChosen)
  })

  it("time servers come from chrony's files and folders where it does not run", async () => {
    const { runner, ran } = programs()
    const files = `/etc/chrony/chrony.conf <<
# Use Debian vendor zone.
! server no.example
pool 2.debian.pool.ntp.org iburst
Server Ntp.example iburst
confdir /run/chrony/conf.d /etc/chrony/conf.d
sourcedir /etc/chrony/sources.d
include /etc/chrony/more/*.inc
include /etc/chrony/chrony.conf
>>
/run/chrony/conf.d/site.conf = server first.example
/etc/chrony/conf.d/site.conf = server hidden.example
/etc/chrony/conf.d/tree.conf = server ntp.shop.example prefer
/etc/chrony/sources.d/dhcp.sources = server 192.0.2.123 iburst
/etc/chrony/sources.d/README = server no.example
/etc/chrony/more/a.inc = peer peer.example
/etc/chrony/more/a.conf = peer no.example
`
    expect(await read(files, runner)).toEqual({
      ntp: {
        fallbackNtpServers: [],
        ntpServers: [
          '2.debian.pool.ntp.org',
          'Ntp.example',
          'first.example',
          'ntp.shop.example',
          '192.0.2.123',
          'peer.example',
        ],
      },
      problems: [],
    })
    expect(ran).toEqual([])
  })

  it.each([
    ['server a.example minpoll 4\npool b.example iburst minpoll 4 maxpoll 10', { pollIntervalMinSec: '16' }],
    ['server a.example minpoll -2\npeer b.example key 1 minpoll 3', {}],
    ['server a.example minpoll -2 maxpoll 0', { pollIntervalMinSec: '0.25', pollIntervalMaxSec: '1' }],
    ['refclock SHM 0 poll 2', {}],
  ])('a poll interval is stated only where all sources of chrony agree: %j', async (text, figures) => {
    const { ntp } = await read(`/etc/chrony.conf <<\n${text}\n>>\n`)
    const { fallbackNtpServers, ntpServers, ...stated } = ntp
    expect([fallbackNtpServers, ntpServers.includes('SHM'), stated]).toEqual([[], false, figures])
  })
})

describe('time servers of ntpd', () => {
  const conf = `/etc/ntpsec/ntp.conf <<
driftfile /var/lib/ntpsec/ntp.drift
server 127.127.1.0
server -4 a.example iburst minpoll 6
includefile "site.conf"
restrict default kod nomodify nopeer noquery limited
>>
/etc/ntpsec/site.conf = pool b.example minpoll 6
/etc/ntpsec/ntp.d/lab.conf = server c.example minpoll 6 # of the lab
/etc/ntpsec/ntp.d/lab.conf~ = server no.example
`

  it.each(['ntpsec.service', 'ntp.service', 'ntpd.service'])(
    "time servers come from ntpd's configuration while %s runs, even if other services are installed",
    async (unit) => {
      const { runner, ran } = programs()
      expect(await read(`${running(unit)}/etc/chrony.conf = server no.example\n${conf}`, runner)).toEqual({
        ntp: {
          fallbackNtpServers: [],
          ntpServers: ['a.example', 'b.example', 'c.example'],
          pollIntervalMinSec: '64',
        },
        problems: [],
      })
      expect(ran).toEqual([])
    },
  )

  it("ntpd's time servers are those of the DHCP lease where its unit uses them", async () => {
    const lease = '/run/ntpsec/ntp.conf.dhcp = server lease.example\n'
    expect((await read(conf + lease)).ntp.ntpServers).toEqual(['lease.example'])
    const ignored = '/etc/default/ntpsec = IGNORE_DHCP="yes"\n'
    expect((await read(conf + lease + ignored)).ntp.ntpServers).toEqual([
      'a.example',
      'b.example',
      'c.example',
    ])
  })
})

it('a machine without a time service has no time servers', async () => {
  expect(await read('')).toEqual({ ntp: { fallbackNtpServers: [], ntpServers: [] }, problems: [] })
})
