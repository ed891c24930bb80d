import { describe, expect, it } from 'vitest'
import { archTypeOf, countCpuList, readCores } from '../../src/host/cpu.ts'
import { parseResolvConf, readDns } from '../../src/host/dns.ts'
import { readGpus } from '../../src/host/gpus.ts'
import { toGiB, toMiB } from '../../src/host/memory.ts'
import { parseShowTimesync, readNtp } from '../../src/host/ntp.ts'
import { parseAssignments, readOperatingSystem } from '../../src/host/operating-system.ts'
import { programs } from '../fixtures/host/edges.ts'
import { machine } from '../fixtures/host/tree.ts'

describe('units', () => {
  it('memory is MiB rounded down', () => {
    expect(toMiB(7930.9 * 2 ** 20)).toBe(7930)
  })

  it('disk space is GiB rounded to the nearest', () => {
    expect([0.49, 0.5, 299.6].map((gib) => toGiB(gib * 2 ** 30))).toEqual([0, 1, 300])
  })
})

describe('processors', () => {
  it.each([
    ['0\n', 1],
    ['0-3', 4],
    ['0-31,64-95', 64],
    ['0,2-3', 3],
    ['', 0],
  ])('%j is %i', (list, cores) => {
    expect(countCpuList(list)).toBe(cores)
  })

  it('fail loudly when the kernel lists none', async () => {
    await expect(readCores(machine('container'))).rejects.toThrow('online')
  })

  it('architecture is spelled as Debian does', () => {
    expect(['x64', 'arm64', 'riscv64'].map(archTypeOf)).toEqual(['amd64', 'arm64', 'riscv64'])
  })
})

describe('operating system', () => {
  it('is what os-release and the kernel say', async () => {
    expect(await readOperatingSystem(machine('rack-server'))).toEqual({
      family: 'ubuntu',
      version: '24.04',
      kernel: 'Linux',
      kernelVersion: '6.8.0-60-generic',
    })
  })

  it('has no version where the distribution has none, and the family it is like where it has no name', async () => {
    const files = machine('', '/etc/os-release <<\nID_LIKE="debian ubuntu"\n>>\n')
    expect(await readOperatingSystem(files)).toEqual({ family: 'debian' })
  })

  it('reads quoting as the shell does', () => {
    const values = parseAssignments('A="b \\"c\\" \\$d"\nB=\'e "f"\'\nC=g\n#D=h\n')
    expect(Object.fromEntries(values)).toEqual({ A: 'b "c" $d', B: 'e "f"', C: 'g' })
  })
})

describe('name servers', () => {
  it('are those behind the stub of systemd-resolved', async () => {
    expect(await readDns(machine('rack-server'))).toEqual({
      nameservers: ['10.0.0.53', '10.0.0.54'],
      options: ['edns0', 'trust-ad'],
      searchDomains: ['shop.example'],
    })
  })

  it('are the stub itself where nothing says what is behind', async () => {
    const files = machine('', '/etc/resolv.conf = nameserver 127.0.0.53\n')
    expect((await readDns(files)).nameservers).toEqual(['127.0.0.53'])
  })

  it('follow resolv.conf(5): comments, the last search list, options that add up', () => {
    const text = `# by hand
domain old.example
nameserver 192.0.2.53 # first
nameserver\t2001:db8::53
; nameserver 192.0.2.99
search a.example b.example
options ndots:5 timeout:1
options rotate
`
    expect(parseResolvConf(text)).toEqual({
      nameservers: ['192.0.2.53', '2001:db8::53'],
      options: ['ndots:5', 'timeout:1', 'rotate'],
      searchDomains: ['a.example', 'b.example'],
    })
  })

  it('are none on a machine without a resolv.conf', async () => {
    expect(await readDns(machine(''))).toEqual({ nameservers: [], options: [], searchDomains: [] })
  })
})

// The form of `timedatectl show-timesync` of systemd 252.
const showTimesync = `LinkNTPServers=192.0.2.123
SystemNTPServers=ntp.shop.example 192.0.2.123
FallbackNTPServers=0.debian.pool.ntp.org 1.debian.pool.ntp.org
ServerName=ntp.shop.example
ServerAddress=192.0.2.123
RootDistanceMaxUSec=5s
PollIntervalMinUSec=32s
PollIntervalMaxUSec=34min 8s
PollIntervalUSec=1min 4s
NTPMessage={ Leap=0, Version=4, Mode=4, Stratum=2 }
Frequency=0
`
const timesyncdRuns = '/run/systemd/timesync/synchronized = \n/run/dbus/system_bus_socket = \n'
const timesyncdUnit = '/usr/lib/systemd/system/systemd-timesyncd.service = [Unit]\n'

describe('time servers', () => {
  it('are what a running timesyncd says', async () => {
    const { runner, ran } = programs({ 'timedatectl show-timesync': showTimesync })
    expect(await readNtp(machine('', timesyncdRuns), runner)).toEqual({
      fallbackNtpServers: ['0.debian.pool.ntp.org', '1.debian.pool.ntp.org'],
      ntpServers: ['ntp.shop.example', '192.0.2.123'],
    })
    expect(ran).toEqual(['timedatectl show-timesync'])
  })

  it('are none where timesyncd has none', () => {
    expect(parseShowTimesync('LinkNTPServers=\nSystemNTPServers=\n')).toEqual({
      fallbackNtpServers: [],
      ntpServers: [],
    })
  })

  it('come from timesyncd.conf and its drop-ins, and no program is started, where it does not run', async () => {
    const { runner, ran } = programs()
    const files = machine(
      '',
      `${timesyncdUnit}/etc/systemd/timesyncd.conf <<
[Time]
NTP=old.example
#FallbackNTP=0.debian.pool.ntp.org
>>
/usr/lib/systemd/timesyncd.conf.d/50-site.conf <<
NTP=hidden.example
>>
/etc/systemd/timesyncd.conf.d/50-site.conf <<
[Time]
NTP=
NTP=a.example b.example
FallbackNTP=c.example
>>
/run/systemd/timesyncd.conf.d/60-more.conf <<
NTP=d.example
>>
`,
    )
    expect(await readNtp(files, runner)).toEqual({
      fallbackNtpServers: ['c.example'],
      ntpServers: ['a.example', 'b.example', 'd.example'],
    })
    expect(ran).toEqual([])
  })

  it('come from the files when timedatectl does not answer', async () => {
    const files = machine('', `${timesyncdRuns}${timesyncdUnit}/etc/systemd/timesyncd.conf = NTP=a.example\n`)
    expect((await readNtp(files, programs().runner)).ntpServers).toEqual(['a.example'])
  })

  it('come from chrony with its folders', async () => {
    const files = machine(
      '',
      `/etc/chrony/chrony.conf <<
# Use Debian vendor zone.
pool 2.debian.pool.ntp.org iburst
confdir /etc/chrony/conf.d
sourcedir /etc/chrony/sources.d
>>
/etc/chrony/conf.d/site.conf = server ntp.shop.example prefer
/etc/chrony/sources.d/dhcp.sources = server 192.0.2.123 iburst
/etc/chrony/sources.d/README = server no.example
`,
    )
    expect((await readNtp(files, programs().runner)).ntpServers).toEqual([
      '2.debian.pool.ntp.org',
      'ntp.shop.example',
      '192.0.2.123',
    ])
  })

  it('come from ntp.conf', async () => {
    const files = machine('', '/etc/ntpsec/ntp.conf <<\nserver -4 a.example iburst\nrestrict default\n>>\n')
    expect((await readNtp(files, programs().runner)).ntpServers).toEqual(['a.example'])
  })
})

it('graphics processors are counted by model and found without a driver', async () => {
  expect(await readGpus(machine('rack-server'))).toEqual([
    {
      vendor: 'NVIDIA',
      model: 'NVIDIA A100-SXM4-40GB',
      gpuCount: 2,
      addresses: { 0: '0000_11_00_0', 1: '0000_12_00_0' },
    },
    { vendor: 'AMD', gpuCount: 1, addresses: { 0: '0000_41_00_0' } },
  ])
  expect(await readGpus(machine('container'))).toEqual([])
})
