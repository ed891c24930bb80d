import { setTimeout as sleep } from 'node:timers/promises'
import { measurePair } from './calm.ts'
import { ratioFigure, type Measure } from './figure.ts'
import { pairedRatios, spread } from './numbers.ts'
import type { Rig } from './rig.ts'
import type { ServerProcess } from './server-process.ts'
import { readRssMiB } from './usage.ts'

/**
 * Time from the start of the process to the first 200 over HTTPS, with the bundle, a primed compile cache, the flags of
 * the unit and existing state, against bare Fastify from node_modules. Then the memory of both at rest.
 */
export const measureStart: Measure = async (rig) => {
  const rounds = rig.isQuick ? 3 : 15
  const own: number[] = []
  const base: number[] = []
  const startOnce = async (start: () => Promise<ServerProcess>) => {
    const server = await start()
    await server.stop()
    return server.startMs
  }
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`start: round ${round + 1} of ${rounds}`)
    const pair = await measurePair(
      round,
      () => startOnce(rig.startBare),
      () => startOnce(rig.startDaemon),
    )
    base.push(pair.base)
    own.push(pair.own)
  }
  const memory = await measureMemory(rig)
  return [
    ratioFigure('start to first 200 ÷ bare Fastify', own, base, {
      target: '≤ 1.00',
      note: `${rounds} pairs`,
    }),
    { name: 'start to first 200', value: spread(own), unit: 'ms' },
    { name: 'start to first 200, bare', value: spread(base), unit: 'ms' },
    {
      name: 'idle RSS ÷ bare Fastify',
      value: spread(pairedRatios(memory.own, memory.base)),
      unit: '',
      target: '≤ 1.20',
      note: `${memory.own.length} pairs, ${memory.idleSec} s after the start`,
    },
    { name: 'idle RSS', value: spread(memory.own), unit: 'MiB' },
    { name: 'idle RSS, bare', value: spread(memory.base), unit: 'MiB' },
  ]
}

async function measureMemory(rig: Rig) {
  const rounds = rig.isQuick ? 1 : 3
  // Longer than the interval of the most frequent job, so that each has run once.
  const idleSec = rig.isQuick ? 3 : 12
  const own: number[] = []
  const base: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`idle RSS: round ${round + 1} of ${rounds}`)
    const bare = await rig.startBare()
    const daemon = await rig.startDaemon()
    await sleep(idleSec * 1_000)
    own.push(readRssMiB(daemon.pid))
    base.push(readRssMiB(bare.pid))
    await Promise.all([daemon.stop(), bare.stop()])
  }
  return { own, base, idleSec }
}
