import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHostFiles } from '../../../src/host/files.ts'
import type { Nic } from '../../../src/host/schemas.ts'
import { parseLoad, parseMemory, parseUptime, readUsage } from '../../../src/host/usage.ts'

const space = { mountPoint: '/', totalBytes: 100, usedBytes: 40, freeBytes: 55 }
const nic = (nicName: string): Nic => ({ nicName, dns: [], isDefault: false })

/** A machine with these files. */
function machineWith(tree: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), 'edgehostd-usage-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return createHostFiles(root)
}

const kernel = {
  '/proc/uptime': '183402.17 702341.55\n',
  '/proc/loadavg': '0.42 1.37 12.31 2/812 41231\n',
  '/proc/meminfo': 'MemTotal:       16234916 kB\nMemFree:         1234 kB\nMemAvailable:   11224892 kB\n',
  '/sys/class/net/eth0/operstate': 'up\n',
  '/sys/class/net/eth1/operstate': 'down\n',
}
const timesyncd = {
  '/sys/fs/cgroup/system.slice/systemd-timesyncd.service/cgroup.events': 'populated 1\nfrozen 0\n',
}
const facts = {
  nics: () => [nic('eth0'), nic('eth1'), nic('gone')],
  fileSystems: () => [space],
  isClockKept: () => undefined,
}

it('the usage has what the kernel says now, and the space as it was read last', async () => {
  expect(await readUsage(machineWith(kernel), facts)).toEqual({
    uptimeSeconds: 183_402,
    load: { oneMinute: 0.42, fiveMinutes: 1.37, fifteenMinutes: 12.31 },
    memory: { totalBytes: 16_624_553_984, usedBytes: 5_130_264_576, availableBytes: 11_494_289_408 },
    clock: {},
    fileSystems: [space],
    links: [
      { name: 'eth0', state: 'up' },
      { name: 'eth1', state: 'down' },
      { name: 'gone', state: 'unknown' },
    ],
  })
})

it('the clock is known while timesyncd runs: it leaves a file when a server has set the clock', async () => {
  const clockOf = async (tree: Readonly<Record<string, string>>) =>
    (await readUsage(machineWith(tree), facts)).clock
  const file = { '/run/systemd/timesync/synchronized': '' }
  expect(await clockOf({ ...timesyncd, ...file })).toEqual({ isSynchronized: true })
  expect(await clockOf(timesyncd)).toEqual({ isSynchronized: false })
  // The file of a service that does not run any more says nothing of now.
  expect(await clockOf(file)).toEqual({})
})

it('without timesyncd the clock is what the time service was last asked for', async () => {
  for (const isSynchronized of [true, false]) {
    const asked = { ...facts, isClockKept: () => isSynchronized }
    expect((await readUsage(machineWith({}), asked)).clock).toEqual({ isSynchronized })
  }
})

it('what the kernel does not show is left out', async () => {
  expect(await readUsage(machineWith({}), { ...facts, nics: () => [], fileSystems: () => [] })).toEqual({
    clock: {},
    fileSystems: [],
    links: [],
  })
  for (const text of ['', 'x', '-1.0 2', '12'])
    expect([parseUptime(text), parseLoad(text), parseMemory(text)]).toEqual([{}, {}, {}])
  expect(parseMemory('MemTotal: 1 kB\n')).toEqual({})
})

it('this machine has all of it', async () => {
  const found = await readUsage(createHostFiles(), {
    ...facts,
    nics: () => [nic('lo')],
    fileSystems: () => [],
  })
  expect(found.uptimeSeconds).toBeGreaterThan(0)
  expect(found.load?.oneMinute).toBeGreaterThanOrEqual(0)
  const { totalBytes = 0, usedBytes = 0, availableBytes = 0 } = found.memory ?? {}
  expect(usedBytes + availableBytes).toBe(totalBytes)
  expect(usedBytes).toBeGreaterThan(0)
})
