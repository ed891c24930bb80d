import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from '../host/edgehostd.ts'
import { eventually } from '../host/eventually.ts'
import { clusterGround } from '../host/ground.ts'

const addresses = { 4: '10.77.0.50', 6: 'fd77::50' } as const
const unit = 'edgehostd-vip.service'

let host: Edgehostd
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine', ground: clusterGround })
})
afterAll(() => host.unplug())

const step = (action: string, order: object) =>
  host.run(['/usr/lib/edgehostd/node', '/usr/lib/edgehostd/step.cjs', action], {
    input: JSON.stringify(order),
  })
const shown = () => host.sh('ip -brief address show dev host0')
const hold = (address: string) => step('hold-address', { address, networkInterface: 'host0' })

describe.each([4, 6] as const)('the address of the control plane, IPv%d', (family) => {
  const address = addresses[family]
  const prefix = `${address}/${family === 4 ? 32 : 128} `

  it('is held by a unit, alone, in the place of the one before', async () => {
    expect(await hold(family === 4 ? '10.77.0.49' : 'fd77::49')).toMatchObject({ exitCode: 0 })
    expect(await hold(address)).toMatchObject({ exitCode: 0 })
    expect(await hold(address)).toMatchObject({ exitCode: 0 })
    expect(await shown()).toContain(prefix)
    expect(await shown()).not.toMatch(/[.:]49\//)
    expect(await host.sh(`systemctl is-enabled ${unit}; systemctl is-active ${unit}`)).toBe(
      'enabled\nactive\n',
    )
  })

  it('comes back when it is removed', async () => {
    await host.sh(`ip address delete ${prefix} dev host0`)
    await eventually(async () => expect(await shown()).toContain(prefix), 5_000)
  })

  it('comes back after a power cut', async () => {
    await host.cutPower()
    await eventually(async () => expect(await shown()).toContain(prefix), 10_000)
  })

  it('is given up, and again', async () => {
    expect(await step('drop-address', {})).toMatchObject({ exitCode: 0 })
    expect(await shown()).not.toContain(prefix)
    expect(
      await host.sh(`ls /etc/systemd/system/${unit} /etc/systemd/system/*/${unit} 2> /dev/null || echo none`),
    ).toBe('none\n')
    expect(await step('drop-address', {})).toMatchObject({ exitCode: 0 })
  })
})

it('an interface that this host does not have is refused with the words of the kernel', async () => {
  const refused = await step('hold-address', { address: addresses[4], networkInterface: 'eth9' })
  expect(refused).toMatchObject({ exitCode: 1 })
  expect(refused.stdout).toBe('ip address replace 10.77.0.50/32 dev eth9: Cannot find device "eth9"\n')
  expect(await host.sh(`ls /etc/systemd/system/${unit} 2> /dev/null || echo none`)).toBe('none\n')
})
