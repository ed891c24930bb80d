import { afterEach, describe, it } from 'vitest'
import { takeCourse } from './host/network-course.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'

// All courses of all backends: test/e2e-long/network-trial.test.ts.
describe('a change of the network of a host with networkd', () => {
  let host: NetworkHost | undefined
  afterEach(() => host?.unplug())

  it('is taken back at its deadline, and the network is as before', async () => {
    host = await bootNetworkHost('networkd')
    await takeCourse(host, 'networkd', 'bridge', 'deadline')
  })

  it('stays when it is confirmed, over a boot too', async () => {
    host = await bootNetworkHost('networkd')
    await takeCourse(host, 'networkd', 'static', 'confirmed')
  })
})
