import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootDriver, outlivesTwoKills, writeUnit } from './host/driver.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

let host: Edgehostd
beforeAll(async () => {
  host = await bootDriver('minbase')
})
afterAll(() => host.unplug())

describe('lasting runs on a host without a system bus', () => {
  it('the host has no system bus', async () => {
    expect((await host.run(['test', '-e', '/run/dbus/system_bus_socket'])).exitCode).toBe(1)
  })

  it.concurrent('a run outlives its unit that is killed twice', () => outlivesTwoKills(host, 'long'))

  it.concurrent('runs in units pass all scenarios of runs in sessions', async () => {
    await writeUnit(host, 'scenarios', 'scenarios')
    await host.sh('sed -i s/^Restart=.*// /etc/systemd/system/scenarios.service; systemctl daemon-reload')
    await host.output(['systemctl', 'start', 'scenarios'])
    await eventually(async () => {
      const state = await host.output(['systemctl', 'show', '--property=ActiveState', '--value', 'scenarios'])
      expect(['inactive', 'failed']).toContain(state.trim())
    }, 90_000)
    const said = (await host.journal('scenarios')).map(({ message }) => message).join('\n')
    expect(said).toContain('all of them hold')
  })
})
