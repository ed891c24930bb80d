import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Inventory } from '../../src/inventory/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import type { Lower } from './host/roots.ts'

const right = 'inventory canary 2301'
const path = '/v1/edge-mgmt/edgehosts/current/inventory'

// A tool of systeminformation that prints where it runs.
const probe = `#!/bin/sh
unit=$(sed -n 's,^0::.*/,,p' /proc/self/cgroup)
{
  systemctl show "$unit" -p Description,IPAddressDeny,MemoryMax,RuntimeMaxUSec,TimeoutStartUSec,Nice,ProtectSystem
  echo "PATH=$PATH"; env | grep -c '^EDGEHOSTD\\|^NOTIFY_SOCKET' | sed 's/^/INHERITED=/'
  touch /etc/written 2>/dev/null && echo WRITTEN
} | systemd-cat -t probe
`

// As the kernel shows the battery of a laptop, and the sensor of a single-board computer.
const sensors = `
mount -t tmpfs none /sys/class/power_supply; mkdir /sys/class/power_supply/BAT0
cat > /sys/class/power_supply/BAT0/uevent <<'END'
POWER_SUPPLY_NAME=BAT0
POWER_SUPPLY_TYPE=Battery
POWER_SUPPLY_STATUS=Discharging
POWER_SUPPLY_PRESENT=1
POWER_SUPPLY_TECHNOLOGY=Li-poly
POWER_SUPPLY_CYCLE_COUNT=127
POWER_SUPPLY_VOLTAGE_MIN_DESIGN=11520000
POWER_SUPPLY_VOLTAGE_NOW=12301000
POWER_SUPPLY_POWER_NOW=4562000
POWER_SUPPLY_ENERGY_FULL_DESIGN=50450000
POWER_SUPPLY_ENERGY_FULL=47250000
POWER_SUPPLY_ENERGY_NOW=39010000
POWER_SUPPLY_CAPACITY=82
POWER_SUPPLY_CAPACITY_LEVEL=Normal
POWER_SUPPLY_MODEL_NAME=01AV405
POWER_SUPPLY_MANUFACTURER=SMP
POWER_SUPPLY_SERIAL_NUMBER= 2213
END
mount -t tmpfs none /sys/class/thermal; mkdir /sys/class/thermal/thermal_zone0
echo cpu-thermal > /sys/class/thermal/thermal_zone0/type; echo 47774 > /sys/class/thermal/thermal_zone0/temp
`

const hosts: Partial<Record<Lower, Edgehostd>> = {}
beforeAll(async () => {
  // While the tests of the other one run, the first one reaches the time of its first reading.
  for (const lower of ['minbase', 'machine'] as const) hosts[lower] = await bootEdgehostd({ lower })
})
afterAll(async () => {
  for (const host of Object.values(hosts)) await host.unplug()
})

describe.each([
  ['with a system bus', 'machine'],
  ['without a system bus', 'minbase'],
] as const)('the inventory of a booted host %s', (_, lower) => {
  let host: Edgehostd
  let token: string
  beforeAll(async () => {
    host = hosts[lower]!
    await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
    token = (await host.openSession('chief', right)).token
  })

  const ask = async (url = path) => {
    const reply = await host.http('GET', url, { token })
    expect(reply, reply.failure).toMatchObject({ status: 200 })
    return reply.json as Inventory
  }

  // One of the hosts is enough.
  it.runIf(lower === 'minbase')(
    'the inventory is read a minute after the first start, without a request',
    async () => {
      await eventually(async () => {
        const units = (await host.journal()).map(({ message }) => message)
        expect(units.some((line) => line.includes('edgehostd: inventory of the hardware'))).toBe(true)
      }, 100_000)
    },
  )

  it('processors and disks of the inventory are those of lscpu and lsblk', async () => {
    const { processor, disks } = await ask(`${path}?refresh=true`)
    const { lscpu } = JSON.parse(await host.output(['lscpu', '--json', '--bytes'])) as {
      lscpu: { field: string; data: string }[]
    }
    const field = (name: string) => lscpu.find((each) => each.field === `${name}:`)?.data
    const number = (name: string) => parseInt(field(name) ?? '', 10)
    // A virtual machine may show no caches, and lscpu gaps in the line of flags.
    const caches = Object.entries({ l1d: 'L1d cache', l2: 'L2 cache', l3: 'L3 cache' })
      .filter(([, name]) => field(name) !== undefined)
      .map(([name, ofLscpu]) => [name, number(ofLscpu)] as const)
    expect(processor).toMatchObject({
      brand: field('Model name')!.split('@')[0]!.trim(),
      family: field('CPU family'),
      model: field('Model'),
      sockets: number('Socket(s)'),
      cores: number('Core(s) per socket') * number('Socket(s)'),
      threads: number('CPU(s)'),
      flags: field('Flags')!
        .split(' ')
        .filter((flag) => flag !== ''),
      ...(caches.length > 0 ? { cacheBytes: Object.fromEntries(caches) } : {}),
    })
    const { blockdevices } = JSON.parse(
      await host.output(['lsblk', '--json', '--bytes', '--nodeps', '--output', 'NAME,TYPE,SIZE']),
    ) as { blockdevices: { name: string; type: string; size: number }[] }
    expect(disks.map(({ name, sizeBytes }) => ({ name, size: sizeBytes }))).toEqual(
      blockdevices
        .filter(({ type, name, size }) => type === 'disk' && size > 0 && !/^(zram|nbd)/.test(name))
        .map(({ name, size }) => ({ name, size })),
    )
  })

  it('battery and temperature of the inventory are those of the kernel', async () => {
    const before = await ask(`${path}?refresh=true`)
    await host.sh(sensors)
    const { battery, temperature } = await ask(`${path}?refresh=true`)
    await host.sh('umount /sys/class/power_supply /sys/class/thermal')
    expect(before.battery).toBeUndefined()
    expect(battery).toEqual({
      ...{ manufacturer: 'SMP', model: '01AV405', serial: '2213', type: 'Li-poly' },
      ...{ cycles: 127, percent: 82 },
    })
    expect(temperature).toEqual({ processorCelsius: 47.8, hottestCelsius: 47.8 })
  })

  it('the inventory is read in a unit of its own, outside the sandbox, with limits and without the network', async () => {
    await host.write('/usr/bin/sensors', probe, 0o755)
    await ask(`${path}?refresh=true`)
    const said = await eventually(async () => {
      const lines = await host.output(['journalctl', '--no-pager', '-t', 'probe', '-o', 'cat'])
      expect(lines).toContain('INHERITED=')
      return lines.trim().split('\n')
    })
    expect(said).toEqual(
      expect.arrayContaining([
        'Description=edgehostd: inventory of the hardware',
        expect.stringMatching(/^IPAddressDeny=(0\.0\.0\.0\/0 ::\/0|::\/0 0\.0\.0\.0\/0)$/) as string,
        `MemoryMax=${256 * 2 ** 20}`,
        'Nice=19',
        'ProtectSystem=strict',
        'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
        'INHERITED=0',
      ]),
    )
    expect(said).not.toContain('WRITTEN')
    expect(said.some((line) => /^(RuntimeMaxUSec|TimeoutStartUSec)=5min$/.test(line))).toBe(true)
  })

  describe('while a tool hangs that does not listen to SIGTERM', () => {
    const hanging = `#!/bin/bash\ntrap '' TERM\nsleep 971 & sleep 971\n`
    beforeAll(async () => {
      await host.sh('cp /usr/bin/lscpu /usr/bin/lscpu.real')
      await host.write('/usr/bin/lscpu', hanging, 0o755)
    })
    afterAll(async () => {
      await host.sh('mv /usr/bin/lscpu.real /usr/bin/lscpu')
      await ask(`${path}?refresh=true`)
    })
    // Without pgrep, which a minimal Debian does not have.
    const lines = `for each in /proc/[0-9]*; do tr '\\0' ' ' < $each/cmdline; echo; done 2>/dev/null`
    const left = async () =>
      (await host.run(['sh', '-c', `${lines} | grep -E 'sleep 97[1]|inventory[.]cjs'`])).stdout

    it('the rest is read, and nothing of the tool is left', async () => {
      const startedAt = performance.now()
      const { disks, conditions } = await ask(`${path}?refresh=true`)
      expect(performance.now() - startedAt).toBeLessThan(60_000)
      expect(disks).not.toEqual([])
      expect(conditions).toContainEqual(
        expect.objectContaining({ type: 'processor', message: 'lscpu: timed-out (10000 ms)' }),
      )
      expect(conditions).not.toContainEqual(expect.objectContaining({ type: 'inventory' }))
      expect(await left()).toBe('')
    })

    it('a stop of the daemon ends the reading', async () => {
      const asked = host.http('GET', `${path}?refresh=true`, { token })
      await eventually(async () => expect(await left()).not.toBe(''), 20_000)
      await host.output(['systemctl', 'restart', 'edgehostd'])
      await asked
      expect(await left()).toBe('')
    })
  })

  it('the inventory is refused to users who are not administrators', async () => {
    await host.addUser({ name: 'viewer', password: right })
    const { token: other } = await host.openSession('viewer', right)
    expect(await host.http('GET', path, { token: other })).toMatchObject({ status: 403 })
  })

  it('edgehostctl shows the inventory as a table and as JSON', async () => {
    const shown = await host.output(['edgehostctl', 'host', 'inventory'])
    expect(shown).toMatch(/Processor: /)
    const inventory = JSON.parse(
      await host.output(['edgehostctl', 'host', 'inventory', '--refresh', '-o', 'json']),
    ) as Inventory
    expect(inventory).toMatchObject({ processor: (await ask()).processor })
  })
})
