import { setTimeout as sleep } from 'node:timers/promises'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'
import { requireAll } from './platform-load.ts'
import { createPlatformRig } from './platform-rig.ts'
import type { ServerProcess } from './server-process.ts'
import { readRssMiB } from './usage.ts'

/** Memory of the connections that hosts keep open from one heartbeat to the next, against bare Fastify that keeps as many. */
export const measurePlatformConnections: Measure = async (rig) => {
  const { count, idleMs, rounds } = rig.isQuick
    ? { count: 500, idleMs: 5_000, rounds: 1 }
    : { count: 2_000, idleMs: 61_000, rounds: 3 }
  const platform = await createPlatformRig(rig, 'connections', count)
  const { hosts } = platform

  /** Resident memory of a kept connection, KiB. */
  async function measure(
    { pid, port, stop }: ServerProcess,
    prepare: () => Promise<unknown>,
  ): Promise<number> {
    await prepare()
    // The code is hot and the heap has grown by requests alone.
    await hosts.run('beatOnce', { port, periodMs: 10_000 })
    const before = readRssMiB(pid)
    requireAll(await hosts.run('beatKept', { port }), '204')
    await sleep(idleMs)
    requireAll(await hosts.run('beatKept', { port }), '204 again')
    const after = readRssMiB(pid)
    await hosts.run('close', { port })
    await stop()
    return ((after - before) * 1_024) / count
  }

  const own: number[] = []
  const base: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-connections: round ${round + 1} of ${rounds}`)
    const bare = await platform.startBare(150_000)
    base.push(await measure(bare, async () => undefined))
    const server = await platform.start()
    const logIn = () => hosts.run('logIn', { port: server.port, atOnce: 20 })
    own.push(await measure(server, logIn))
  }
  await hosts.stop()
  const note = `${count} connections, idle for ${idleMs / 1_000} s and used again, ${rounds} rounds`
  return [
    {
      name: 'platform connections: memory of each',
      value: spread(own),
      unit: 'KiB',
      target: '≤ 100 KiB',
      note,
    },
    { name: 'platform connections: memory of each, bare Fastify', value: spread(base), unit: 'KiB' },
    ratioFigure('platform connections: memory ÷ bare Fastify', own, base),
  ]
}
