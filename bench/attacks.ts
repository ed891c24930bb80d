import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttackName, AttackResult } from './attacker.ts'
import { readStops } from './content-many.ts'
import type { Figure, Measure } from './figure.ts'
import { spread } from './numbers.ts'
import type { Rig } from './rig.ts'
import type { ServerProcess } from './server-process.ts'

const attacks: Readonly<Record<AttackName, string>> = {
  pipelining: '60 connections send the smallest request over and over, and read the replies',
  'slow readers': 'the same, and read nothing',
  'one-byte chunks': '60 bodies in chunks of one byte',
  'slow bodies': '60 bodies of a byte a second',
  'half-open handshakes': '60 connections send half of a handshake, each again when it is closed',
}

/** What strangers cost all others: the longest stop of the event loop, pings of another address meanwhile, and memory. */
export const measureAttacks: Measure = async (rig) => {
  const delayFile = join(rig.folder, 'loop-delay-of-attacks')
  const daemon = await rig.startDaemon({
    core: rig.cores?.server,
    flags: ['--require', join(import.meta.dirname, 'loop-delay.cjs')],
    environment: { BENCH_LOOP_DELAY: delayFile },
    // Limits of rates as they ship: each refusal is a part of the attack.
    settings: { 'api.rateLimits.requestsPerSecond': 10 },
  })
  const figures: Figure[] = []
  try {
    for (const [name, what] of Object.entries(attacks)) {
      rig.say(`attacks: ${name}`)
      const before = residentBytes(daemon)
      await readStops(daemon, delayFile)
      const result = await attack(rig, daemon, name as AttackName)
      const { longestMs, busiestMs } = await readStops(daemon, delayFile)
      const more = (peakBytes(daemon) - before) / 1_048_576
      figures.push(
        {
          name: `attacks: ${name}, longest stop of the event loop`,
          ...{ value: spread([longestMs]), unit: 'ms', target: '≤ 50 ms' },
          note: `${what}; most time of a processor between two turns: ${busiestMs.toFixed(0)} ms`,
        },
        {
          name: `attacks: ${name}, pings of another address, p99`,
          ...{ value: spread([result.pingP99Ms]), unit: 'ms', target: '≤ 350 ms' },
          note: `new TLS connections; ${result.pings} answered, ${result.failedPings} not`,
        },
        {
          name: `attacks: ${name}, more memory`,
          ...{ value: spread([more]), unit: 'MiB', target: '≤ 100 MiB' },
        },
      )
      // Its connections are closed.
      await sleep(1_000)
    }
  } finally {
    await daemon.stop()
  }
  return figures
}

async function attack(rig: Rig, { port }: ServerProcess, name: AttackName): Promise<AttackResult> {
  const seconds = rig.isQuick ? 5 : 15
  const child = fork(join(import.meta.dirname, 'attacker.ts'), [name, String(port), String(seconds)], {
    execArgv: [],
  })
  const [result] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error(`the attacker ${name} has ended`)
    }),
  ])) as [AttackResult]
  child.kill()
  return result
}

const memoryOf = ({ pid }: ServerProcess, field: string) =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) *
  1_024
const residentBytes = (server: ServerProcess) => memoryOf(server, 'VmRSS')
const peakBytes = (server: ServerProcess) => memoryOf(server, 'VmHWM')
