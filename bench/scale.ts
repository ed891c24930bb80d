import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { createLooker } from './first-look.ts'
import { openHostNamespace, type HostNamespace, type InsideServer } from './host-namespace.ts'
import { findLoadGenerator, type LoadResult } from './load.ts'
import { single, spread } from './numbers.ts'
import { logIn, type Rig } from './rig.ts'
import { readCpuMs } from './usage.ts'

const path = '/v1/edge-mgmt/edgehosts/current'
const vethPairs = 300
const tmpfsMounts = 500
const crowdText = `${vethPairs} veth pairs, ${tmpfsMounts} tmpfs mounts`

interface Host {
  readonly namespace: HostNamespace
  readonly daemon: InsideServer
}

/** The same daemon on two hosts, side by side, that differ only in what a crowd of pods leaves behind. */
export const measureScale: Measure = async (rig) => {
  const state = join(rig.folder, 'state')
  // Whoever has logged in here is logged in with every copy of the state.
  const first = await rig.startDaemon()
  const client = rig.client(first)
  const token = await logIn(client, rig.accounts.good)
  client.close()
  await first.stop()

  const namespaces: HostNamespace[] = []
  const open = async (name: string, crowd: { vethPairs: number; tmpfsMounts: number }) => {
    const folder = join(rig.folder, name)
    mkdirSync(join(folder, 'mounts'), { recursive: true })
    const namespace = await openHostNamespace(join(folder, 'mounts'), crowd)
    namespaces.push(namespace)
    return { folder, namespace }
  }
  const startIn = async ({ folder, namespace }: { folder: string; namespace: HostNamespace }) => {
    cpSync(state, join(folder, 'state'), { recursive: true })
    const settings = { 'state.directory': join(folder, 'state') }
    const order = await rig.daemonOrder(settings)
    const log = join(folder, 'daemon.log')
    return { namespace, daemon: await namespace.start({ ...order, log, core: rig.cores?.server }) }
  }
  try {
    rig.say('scale: setting up two hosts')
    const plain = await open('plain', { vethPairs: 0, tmpfsMounts: 0 })
    const crowded = await open('crowded', { vethPairs, tmpfsMounts })
    const looks = await measureLooks(rig, crowded.namespace, plain.namespace)
    const own = await startIn(crowded)
    const base = await startIn(plain)
    // First, while neither has anything to tidy up after.
    const idle = await measureIdle(rig, own.daemon, base.daemon)
    const latencies = await measureLatency(rig, own, base, token)
    await Promise.all([own.daemon.stop(), base.daemon.stop()])
    return [...latencies, ...idle, ...looks]
  } finally {
    await Promise.all(namespaces.map((each) => each.close()))
  }
}

async function measureLooks(rig: Rig, crowded: HostNamespace, plain: HostNamespace): Promise<Figure[]> {
  const rounds = rig.isQuick ? 5 : 15
  const looker = await createLooker(rig)
  const own: number[] = []
  const base: number[] = []
  const look = async ({ enter }: HostNamespace, times: number[]) => {
    times.push((await looker.look({ first: 'look' }, enter)).lookMs)
  }
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`scale: first look, round ${round + 1} of ${rounds}`)
    const both = [() => look(plain, base), () => look(crowded, own)]
    for (const each of round % 2 === 0 ? both : both.reverse()) await each()
  }
  return [
    ratioFigure('scale: first look ÷ without', own, base, {
      target: '≤ 2',
      note: `${rounds} pairs of fresh processes`,
    }),
    { name: 'scale: first look', value: spread(own), unit: 'ms' },
    { name: 'scale: first look, without', value: spread(base), unit: 'ms' },
  ]
}

async function measureLatency(rig: Rig, own: Host, base: Host, token: string): Promise<Figure[]> {
  // The facts that are read every 5 s are read once in each slice.
  const { rounds, seconds } = rig.isQuick ? { rounds: 3, seconds: 1 } : { rounds: 7, seconds: 5 }
  const generator = await findLoadGenerator()
  const slice = ({ namespace: { enter }, daemon: { port } }: Host): Promise<LoadResult> => {
    const url = `https://127.0.0.1:${port}${path}`
    return generator.run({ url, token, connections: 1, seconds, core: rig.cores?.load, enter })
  }
  await slice(base)
  await slice(own)
  const ownSlices: LoadResult[] = []
  const baseSlices: LoadResult[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`scale: latency, round ${round + 1} of ${rounds}`)
    if (round % 2 === 0) baseSlices.push(await slice(base))
    ownSlices.push(await slice(own))
    if (round % 2 === 1) baseSlices.push(await slice(base))
  }
  // On one connection the next request leaves when the reply is there.
  const mean = ({ perSecond }: LoadResult) => 1_000_000 / perSecond
  const p99 = ({ p99Ms }: LoadResult) => p99Ms
  return [
    ratioFigure('scale: latency ÷ without', ownSlices.map(mean), baseSlices.map(mean), {
      target: '≤ 1.2',
      note: `${crowdText}; ${generator.name}, 1 connection, ${rounds} pairs of ${seconds} s, mean`,
    }),
    ratioFigure('scale: p99 ÷ without', ownSlices.map(p99), baseSlices.map(p99)),
    { name: 'scale: latency', value: spread(ownSlices.map(mean)), unit: 'us' },
    { name: 'scale: latency, without', value: spread(baseSlices.map(mean)), unit: 'us' },
  ]
}

async function measureIdle(rig: Rig, own: InsideServer, base: InsideServer): Promise<Figure[]> {
  const seconds = rig.isQuick ? 30 : 300
  rig.say('scale: settling')
  await sleep(rig.isQuick ? 10_000 : 60_000)
  rig.say(`scale: idle, ${seconds} s`)
  const read = () => [own, base].map(({ pid }) => readCpuMs(pid, { children: true }))
  const [ownBefore = 0, baseBefore = 0] = read()
  await sleep(seconds * 1_000)
  const [ownAfter = 0, baseAfter = 0] = read()
  const ownMs = ownAfter - ownBefore
  const baseMs = baseAfter - baseBefore
  const percent = (ms: number) => single(ms / seconds / 10)
  return [
    {
      name: 'scale: idle CPU ÷ without',
      value: single(ownMs / baseMs),
      unit: '',
      target: '≤ 1.2',
      note: `${ownMs} ms and ${baseMs} ms in the same ${seconds} s, children included, counted in steps of 10 ms`,
    },
    { name: 'scale: idle CPU of a core', value: percent(ownMs), unit: '%' },
    { name: 'scale: idle CPU of a core, without', value: percent(baseMs), unit: '%' },
  ]
}
