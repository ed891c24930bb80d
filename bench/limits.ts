import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ratioFigure, type Figure, type Measure, type Remarks } from './figure.ts'
import type { FloodResult } from './limits-probe.ts'
import { findLoadGenerator, type LoadResult } from './load.ts'
import { single } from './numbers.ts'
import type { Rig } from './rig.ts'
import { findPort, startServer } from './server-process.ts'
import { readCpuMs } from './usage.ts'

const connections = 32
const trackedKeys = 65_536

const execute = promisify(execFile)
const root = join(import.meta.dirname, '..')

/** What limiter and guard cost a request, and the memory of the counters. */
export const measureLimits: Measure = async (rig) => [...(await measureCost(rig)), ...(await measureFloods())]

interface Slice extends LoadResult {
  /** Of the server, in both modes. */
  readonly cpuUsPerRequest: number
}

/** The same small reply of one server, with limiter and guard and without, in turns. */
async function measureCost(rig: Rig): Promise<Figure[]> {
  const { rounds, seconds } = rig.isQuick ? { rounds: 3, seconds: 1 } : { rounds: 9, seconds: 2 }
  const generator = await findLoadGenerator()
  const port = await findPort()
  const tokenFile = join(rig.folder, 'limits-token')
  const key = join(dirname(rig.certificate), 'key.pem')
  const program = join(root, 'bench', 'limits-server.ts')
  const server = await startServer({
    command: [process.execPath, ...rig.flags, program, String(port), key, rig.certificate, tokenFile],
    port,
    certificate: rig.certificate,
    path: '/v1/ping',
    log: join(rig.folder, 'limits.log'),
    core: rig.cores?.server,
  })
  try {
    const token = readFileSync(tokenFile, 'utf8')
    const slice = async (path: string): Promise<Slice> => {
      const before = readCpuMs(server.pid)
      const url = `https://127.0.0.1:${port}${path}`
      const result = await generator.run({ url, token, connections, seconds, core: rig.cores?.load })
      return { ...result, cpuUsPerRequest: ((readCpuMs(server.pid) - before) * 1_000) / result.requests }
    }
    // The code of both is hot before the first round counts.
    for (const path of ['/v1/ping', '/v1/guarded']) await slice(path)
    const own: Slice[] = []
    const base: Slice[] = []
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`limits: round ${round + 1} of ${rounds}`)
      // Neither is always the one that comes second.
      if (round % 2 === 0) base.push(await slice('/v1/ping'))
      own.push(await slice('/v1/guarded'))
      if (round % 2 === 1) base.push(await slice('/v1/ping'))
    }
    const ratio = (name: string, of: (slice: Slice) => number, remarks?: Remarks) =>
      ratioFigure(name, own.map(of), base.map(of), remarks)
    return [
      ratio('limits: requests/s with limiter and guard ÷ without', (each) => each.perSecond, {
        target: '≥ 0.90',
        note: `${generator.name}, ${connections} connections, ${rounds} pairs of ${seconds} s, a reply of 14 bytes`,
      }),
      ratio('limits: CPU a request with limiter and guard ÷ without', (each) => each.cpuUsPerRequest),
    ]
  } finally {
    await server.stop()
  }
}

async function measureFloods(): Promise<Figure[]> {
  const floods = await Promise.all([flood('IPv4'), flood('IPv6')])
  return floods.flatMap(({ family, addresses, counters, memoryMiB, longestMs }) => [
    {
      name: `limits: memory after 1,000,000 ${family} addresses`,
      value: single(memoryMiB),
      unit: 'MiB' as const,
      target: 'bounded',
      note: `${counters} counters are left of ${addresses} addresses, each with one request`,
    },
    {
      name: `limits: CPU of the longest among them, ${family}`,
      value: single(longestMs),
      unit: 'ms' as const,
    },
  ])
}

async function flood(family: 'IPv4' | 'IPv6') {
  const program = join(root, 'bench', 'limits-probe.ts')
  const { stdout } = await execute(process.execPath, [program, String(trackedKeys), family])
  return { family, ...(JSON.parse(stdout) as FloodResult) }
}
