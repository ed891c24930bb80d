import { afterAll, beforeAll, describe, it } from 'vitest'
import {
  bootTrialHost,
  caseNames,
  courses,
  keeping,
  takeCourse,
  type TrialHost,
} from '../e2e/host/network-course.ts'
import type { Owner } from '../e2e/host/network-host.ts'

const backends: readonly Owner[] = ['netplan', 'networkd', 'ifupdown', 'networkmanager']

// For a host of its own at a time: vitest run --project e2e-long test/e2e-long/network-trial.test.ts -t 'with netplan: > bridge'
describe.each(backends)('a change of the network of a host with %s:', (backend) => {
  describe.each(caseNames)('%s', (name) => {
    let host: TrialHost
    beforeAll(async () => {
      host = await bootTrialHost(backend)
    })
    afterAll(() => host.unplug())

    it.each(courses.filter((each) => !keeping.includes(each)))(
      'the host is reached, and is as before: %s',
      async (course) => takeCourse(host, name, course),
    )
    // Nothing can be taken on this host after it.
    it.each(keeping.slice(0, 1))('it is kept: %s', async (course) => takeCourse(host, name, course))
  })

  it.each(caseNames)('%s is kept over a boot when it is confirmed', async (name) => {
    const host = await bootTrialHost(backend)
    try {
      await takeCourse(host, name, 'confirmed')
    } finally {
      await host.unplug()
    }
  })
})
