import { setTimeout as sleep } from 'node:timers/promises'
import type { Measure } from './figure.ts'
import { single } from './numbers.ts'
import { logIn } from './rig.ts'
import { readCpuMs } from './usage.ts'

/** Processor time of the daemon and its children without requests, with one session. */
export const measureIdle: Measure = async (rig) => {
  const seconds = rig.isQuick ? 30 : 300
  const daemon = await rig.startDaemon()
  const client = rig.client(daemon)
  await logIn(client, rig.accounts.good)
  client.close()
  // The work that follows a start does not count: garbage collection, and the inventory, which is first read a minute later.
  await sleep(rig.isQuick ? 10_000 : 90_000)
  rig.say(`idle: ${seconds} s`)
  const startedAt = performance.now()
  const before = readCpuMs(daemon.pid, { children: true })
  await sleep(seconds * 1_000)
  const used = readCpuMs(daemon.pid, { children: true }) - before
  const percent = (used / (performance.now() - startedAt)) * 100
  await daemon.stop()
  return [
    {
      name: 'idle CPU of a core',
      value: single(percent),
      unit: '%',
      target: '≤ 0.2 %',
      note: `${used} ms in ${seconds} s, children included`,
    },
  ]
}
