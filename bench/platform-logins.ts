import type { Measure } from './figure.ts'
import { single, spread } from './numbers.ts'
import { createPlatformRig } from './platform-rig.ts'
import { readPeakMiB } from './usage.ts'

/** Hosts that lost the platform and come back at the same moment: each logs in and sends a heartbeat. */
export const measurePlatformLogins: Measure = async (rig) => {
  const { count, rounds } = rig.isQuick ? { count: 200, rounds: 1 } : { count: 2_000, rounds: 3 }
  const platform = await createPlatformRig(rig, 'logins', count)
  const durations: number[] = []
  const peaks: number[] = []
  const ends = new Map<string, number>()
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-logins: round ${round + 1} of ${rounds}`)
    const server = await platform.start()
    const { durationMs, outcomes } = await platform.hosts.run('comeBack', { port: server.port })
    durations.push(durationMs / 1_000)
    peaks.push(readPeakMiB(server.pid))
    for (const [end, times] of Object.entries(outcomes)) ends.set(end, (ends.get(end) ?? 0) + times)
    await platform.hosts.run('close', { port: server.port })
    await server.stop()
  }
  await platform.hosts.stop()
  return [
    {
      name: `platform logins: ${count} hosts back at once, the last one`,
      ...{ value: spread(durations), unit: 's', target: '≤ 120 s' },
      note: `${rounds} rounds, tries ${[...ends].map(([end, times]) => `${times} × ${end}`).join(', ')}`,
    },
    { name: 'platform logins: peak memory', value: single(Math.max(...peaks)), unit: 'MiB' },
  ]
}
