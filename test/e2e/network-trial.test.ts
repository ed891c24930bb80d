import { afterEach, describe, it } from 'vitest'
import { bootTrialHost, takeCourse, type TrialHost } from './host/network-course.ts'

// All courses of all backends: test/e2e-long/network-trial.test.ts.
describe('a change of the network of a host with networkd', () => {
  let host: TrialHost | undefined
  afterEach(() => host?.unplug())

  it('is taken back at its deadline, and the network is as before', async () => {
    host = await bootTrialHost('networkd')
    await takeCourse(host, 'bridge', 'deadline')
  })

  it('stays when it is confirmed, over a boot too', async () => {
    host = await bootTrialHost('networkd')
    await takeCourse(host, 'static', 'confirmed')
  })
})
