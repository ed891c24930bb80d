import { describe, expect, it } from 'vitest'
import { findTimePlace, timeText } from '../../../../src/cluster/host/ntp-servers.ts'
import type { HostFiles } from '../../../../src/host/files.ts'

/** A host of these files, on which a unit runs. */
function hostWith(running: string | undefined, texts: Readonly<Record<string, string>> = {}): HostFiles {
  const all = new Map(Object.entries(texts))
  if (running !== undefined)
    all.set(`/sys/fs/cgroup/system.slice/${running}/cgroup.events`, 'populated 1\nfrozen 0\n')
  return { text: async (path) => all.get(path), names: async () => [], link: async () => undefined }
}
// As Debian 12 and RHEL 9 ship them, shortened.
const debian = `# Include configuration files found in /etc/chrony/conf.d.
confdir /etc/chrony/conf.d
pool 2.debian.pool.ntp.org iburst
# Use time sources from DHCP.
sourcedir /run/chrony-dhcp
# Use NTP sources found in /etc/chrony/sources.d.
sourcedir /etc/chrony/sources.d
keyfile /etc/chrony/chrony.keys
`

describe('the place for NTP servers', () => {
  it('of systemd-timesyncd is the last of its drop-ins', async () => {
    expect(await findTimePlace(hostWith('systemd-timesyncd.service'))).toEqual({
      ...{ unit: 'systemd-timesyncd.service', form: 'timesyncd', reading: 'restart' },
      path: '/etc/systemd/timesyncd.conf.d/zz-edgehostd-cluster.conf',
    })
  })

  it.each([
    [
      'chrony.service',
      { '/etc/chrony/chrony.conf': debian },
      { path: '/etc/chrony/sources.d/zz-edgehostd-cluster.sources', reading: 'sources' },
    ],
    [
      'chronyd.service',
      { '/etc/chrony.conf': 'pool pool.example iburst\nConfDir /usr/share/chrony /etc/chrony.d\n' },
      { path: '/etc/chrony.d/zz-edgehostd-cluster.conf', reading: 'restart' },
    ],
  ])(
    'of %s is a folder that its configuration names and that outlives a start of the host',
    async (unit, texts, place) => {
      expect(await findTimePlace(hostWith(unit, texts))).toEqual({ unit, form: 'chrony', ...place })
    },
  )

  it.each([
    [
      'chronyd.service',
      { '/etc/chrony.conf': '#sourcedir /etc/chrony/sources.d\nsourcedir /run/chrony-dhcp\n' },
      'sourcedir',
    ],
    ['chronyd.service', {}, '/etc/chrony.conf'],
    ['ntpsec.service', {}, 'ntpsec.service'],
    [undefined, {}, 'no time service'],
  ])('is none with %s and %j, and the reason names what to do', async (unit, texts, named) => {
    expect(await findTimePlace(hostWith(unit, texts))).toEqual({ problem: expect.stringContaining(named) })
  })

  it('a drop-in of timesyncd takes the place of all servers before it; chrony prefers the servers', () => {
    const mark = '# Written by edgehostd for its cluster; removed when the cluster is deleted.\n'
    const servers = ['a.example', '2001:db8::1']
    expect(timeText({ form: 'timesyncd' }, servers)).toBe(`${mark}[Time]\nNTP=\nNTP=a.example 2001:db8::1\n`)
    expect(timeText({ form: 'chrony' }, servers)).toBe(
      `${mark}server a.example iburst prefer\nserver 2001:db8::1 iburst prefer\n`,
    )
  })
})
