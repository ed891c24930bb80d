import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measure } from './figure.ts'
import { single } from './numbers.ts'

// What feeds systemd's watchdog is no reading of the host.
const watchdog = 'systemd-notify'

/** How many programs the daemon starts while nothing changes; it says so itself, at level debug. */
export const measurePrograms: Measure = async (rig) => {
  // The five minutes of the slowest job; a quick run may see it or not.
  const seconds = rig.isQuick ? 60 : 300
  const daemon = await rig.startDaemon({ settings: { 'log.level': 'debug' } })
  // The first look at the host comes a second after the start.
  await sleep(10_000)
  rig.say(`programs: ${seconds} s`)
  const before = readFileSync(daemon.log, 'utf8').length
  await sleep(seconds * 1_000)
  const counts = countStarts(readFileSync(daemon.log, 'utf8').slice(before))
  await daemon.stop()
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const names = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return [
    {
      name: 'programs started a minute',
      value: single((total * 60) / seconds),
      unit: '',
      target: '≤ 2',
      note: `${names.join(', ') || 'none'} in ${seconds} s, nobody asking, the watchdog aside`,
    },
  ]
}

/** Started programs by name, from the daemon's log: JSON lines, each behind its priority. */
export function countStarts(log: string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const line of log.split('\n')) {
    if (!line.includes('"msg":"a program is started"')) continue
    const { program } = JSON.parse(line.slice(line.indexOf('{'))) as { program: string }
    if (program !== watchdog) counts[program] = (counts[program] ?? 0) + 1
  }
  return counts
}
