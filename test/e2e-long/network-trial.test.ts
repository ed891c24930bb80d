import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { courses, takeCourse } from '../e2e/host/network-course.ts'
import { bootNetworkHost, type Case, type NetworkHost, type TestedBackend } from '../e2e/host/network-host.ts'

const backends: readonly TestedBackend[] = ['networkd', 'ifupdown', 'networkmanager']
const cases: readonly Case[] = ['static', 'dhcp', 'bridge', 'mtu']

describe.each(backends)('a change of the network of a host with %s', (backend) => {
  describe.each(cases)('%s', (name) => {
    let host: NetworkHost
    beforeAll(async () => {
      host = await bootNetworkHost(backend)
    })
    afterAll(() => host.unplug())

    it.each(courses.filter((each) => each !== 'confirmed'))(
      'leaves the host reachable: %s',
      async (course) => {
        await takeCourse(host, backend, name, course)
        expect(await host.sh('ls /run/edgehostd-network 2> /dev/null || true')).not.toContain('trial')
      },
    )
  })

  it.each(cases)('stays when it is confirmed: %s', async (name) => {
    const host = await bootNetworkHost(backend)
    try {
      await takeCourse(host, backend, name, 'confirmed')
    } finally {
      await host.unplug()
    }
  })
})
