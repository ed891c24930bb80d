import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttackName, AttackOrder, AttackResult, Target } from './attacker.ts'
import { readStops } from './event-loop.ts'
import { type Figure, type Measure, readPeakMiB, readRssMiB, resetPeak, spread } from './figure.ts'
import { createPlatformRig } from './platform.ts'
import { findPort, type Rig, type ServerProcess } from './rig.ts'

const attacks: Readonly<Record<AttackName, string>> = {
  none: 'no attack: what the machine itself does meanwhile',
  pipelining: '60 connections send the smallest request over and over, and read the replies',
  'slow readers': 'the same, and read nothing',
  'one-byte chunks': '60 bodies in chunks of one byte',
  'slow bodies': '60 bodies of a byte a second',
  'half-open handshakes': '60 connections send half of a handshake, each again when it is closed',
}

const longestEndMs = 60_000

/** What an attack on a server costs all others. */
interface Cost extends AttackResult {
  readonly attack: AttackName
  readonly longestMs: number
  /** Of a processor, between two turns of the event loop: without what the rest of the machine does. */
  readonly busiestMs: number
  readonly moreMiB: number
}

/** One process with servers that are attacked one after the other. */
interface Attacked {
  readonly server: ServerProcess
  readonly delayFile: string
  readonly targets: Readonly<Record<string, Target>>
}

/** What strangers cost all others on each of the four servers: the longest stop of the event loop, pings of another address, and memory. */
export const measureAttacks: Measure = async (rig) => [
  ...(await attackAll(rig, await startHost(rig))),
  ...(await attackAll(rig, await startPlatform(rig))),
]

const watching = (delayFile: string) => ({
  flags: ['--require', join(import.meta.dirname, 'loop-delay.cjs')],
  environment: { BENCH_LOOP_DELAY: delayFile },
})

async function startHost(rig: Rig): Promise<Attacked> {
  const delayFile = join(rig.folder, 'loop-delay-of-attacks')
  const path = join(rig.folder, 'socket-of-attacks')
  const registryPort = await findPort()
  const server = await rig.startDaemon({
    core: rig.cores?.server,
    ...watching(delayFile),
    settings: {
      // Limits of rates as they ship: each refusal is a part of the attack.
      'api.rateLimits.requestsPerSecond': 10,
      'api.socket.path': path,
      'content.registry.port': registryPort,
    },
  })
  const ping = { port: server.port, isTls: true, pingPath: '/v1/ping' }
  return {
    server,
    delayFile,
    targets: {
      API: { ...ping, attacked: { port: server.port, isTls: true } },
      registry: {
        port: registryPort,
        isTls: false,
        pingPath: '/v2/',
        attacked: { port: registryPort, isTls: false },
      },
      'socket of root': { ...ping, attacked: { path, isTls: false } },
    },
  }
}

async function startPlatform(rig: Rig): Promise<Attacked> {
  const delayFile = join(rig.folder, 'loop-delay-of-platform-attacks')
  const platform = await createPlatformRig(rig, 'platform-attacks', 1)
  await platform.hosts.stop()
  const server = await platform.start(watching(delayFile))
  const { port } = server
  return {
    server,
    delayFile,
    targets: {
      platform: { port, isTls: true, pingPath: '/v1/health/ping', attacked: { port, isTls: true } },
    },
  }
}

async function attackAll(rig: Rig, { server, delayFile, targets }: Attacked): Promise<Figure[]> {
  const figures: Figure[] = []
  try {
    for (const [name, target] of Object.entries(targets)) {
      for (const attack of Object.keys(attacks) as AttackName[]) {
        if (attack === 'half-open handshakes' && !target.attacked.isTls) continue
        rig.say(`attacks: ${name}, ${attack}`)
        const before = socketsOf(server.pid)
        figures.push(...rowsOf(name, await measure(rig, server, delayFile, { ...target, attack })))
        // What a connection has sent is parsed before its end is seen: the next attack would find the connections of this one.
        const deadline = performance.now() + longestEndMs
        do await sleep(1_000)
        while (socketsOf(server.pid) > before && performance.now() < deadline)
      }
    }
  } finally {
    await server.stop()
  }
  return figures
}

/** Number of sockets of a process. */
function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`
  const targetOf = (name: string) => {
    try {
      return readlinkSync(join(folder, name))
    } catch {
      // It was closed meanwhile.
      return ''
    }
  }
  return readdirSync(folder).filter((name) => targetOf(name).startsWith('socket:')).length
}

async function measure(
  rig: Rig,
  server: ServerProcess,
  delayFile: string,
  order: Omit<AttackOrder, 'seconds'>,
): Promise<Cost> {
  const before = readRssMiB(server.pid)
  await readStops(server, delayFile)
  resetPeak(server.pid)
  const pings = send(rig, { ...order, attack: 'none' })
  if (order.attack !== 'none') await send(rig, order)
  const result = await pings
  const stops = await readStops(server, delayFile)
  const moreMiB = Math.max(0, readPeakMiB(server.pid) - before)
  return { ...result, ...stops, attack: order.attack, moreMiB }
}

function rowsOf(target: string, cost: Cost): Figure[] {
  const { attack, longestMs, busiestMs, pingP99Ms, pingP50Ms, pings, failedPings, moreMiB } = cost
  const isAttack = attack !== 'none'
  const name = `attacks: ${target}, ${attack}`
  const floor = (target: string) => (isAttack ? { target } : {})
  return [
    {
      name: `${name}, longest stop of the event loop`,
      value: spread([longestMs]),
      unit: 'ms',
      ...floor('≤ 50 ms'),
      note: `${attacks[attack]}; most time of a processor between two turns: ${busiestMs.toFixed(0)} ms`,
    },
    {
      name: `${name}, pings of another address, p99`,
      value: spread([pingP99Ms]),
      unit: 'ms',
      ...floor('≤ 350 ms'),
      note: `new connections; p50 ${pingP50Ms.toFixed(0)} ms; ${pings} answered, ${failedPings} not`,
    },
    ...(isAttack
      ? [
          {
            name: `${name}, more memory`,
            value: spread([moreMiB]),
            unit: 'MiB' as const,
            target: '≤ 100 MiB',
          },
        ]
      : []),
  ]
}

async function send(rig: Rig, order: Omit<AttackOrder, 'seconds'>): Promise<AttackResult> {
  const seconds = rig.isQuick ? 5 : 15
  const child = fork(join(import.meta.dirname, 'attacker.ts'), [JSON.stringify({ ...order, seconds })], {
    execArgv: [],
  })
  const [result] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error(`the attacker ${order.attack} has ended`)
    }),
  ])) as [AttackResult]
  child.kill()
  return result
}
