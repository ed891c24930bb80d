import { measurePair } from './calm.ts'
import { ratioFigure, type Measure, type Remarks } from './figure.ts'
import { findLoadGenerator, type LoadResult } from './load.ts'
import { spread } from './numbers.ts'
import { logIn } from './rig.ts'
import { readCpuMs } from './usage.ts'

const path = '/v1/edge-mgmt/edgehosts/current'
const connections = 32

interface Slice extends LoadResult {
  /** Of the server, user and system time. */
  readonly cpuUsPerRequest: number
}

/**
 * `GET …/edgehosts/current` with a token, against bare Fastify that sends the same bytes from a constant buffer. The two
 * alternate in slices of one run, so that both meet the same conditions.
 */
export const measureReads: Measure = async (rig) => {
  const { rounds, seconds } = rig.isQuick ? { rounds: 3, seconds: 1 } : { rounds: 9, seconds: 2 }
  const generator = await findLoadGenerator()
  const core = rig.cores?.server
  const daemon = await rig.startDaemon({ core })
  const client = rig.client(daemon)
  const token = await logIn(client, rig.accounts.good)
  const { body, status } = await client.send('GET', path, { token })
  client.close()
  if (status !== 200) throw new Error(`${path} answers ${status}`)
  const bare = await rig.startBare({ core, body })

  const slice = async ({ pid, port }: { pid: number; port: number }): Promise<Slice> => {
    const before = readCpuMs(pid)
    const url = `https://127.0.0.1:${port}${path}`
    const result = await generator.run({ url, token, connections, seconds, core: rig.cores?.load })
    return { ...result, cpuUsPerRequest: ((readCpuMs(pid) - before) * 1_000) / result.requests }
  }
  // The code of both is hot before the first round counts.
  await slice(bare)
  await slice(daemon)
  const own: Slice[] = []
  const base: Slice[] = []
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`reads: round ${round + 1} of ${rounds}`)
    const pair = await measurePair(
      round,
      () => slice(bare),
      () => slice(daemon),
    )
    base.push(pair.base)
    own.push(pair.own)
  }
  await Promise.all([daemon.stop(), bare.stop()])

  const how = `${generator.name}, ${connections} connections, ${rounds} pairs of ${seconds} s, ${body.length} bytes`
  const ratio = (name: string, of: (slice: Slice) => number, remarks?: Remarks) =>
    ratioFigure(name, own.map(of), base.map(of), remarks)
  return [
    ratio('reads: requests/s ÷ bare Fastify', (each) => each.perSecond, {
      target: '≥ 0.70',
      note: how,
    }),
    ratio('reads: CPU a request ÷ bare Fastify', (each) => each.cpuUsPerRequest),
    ratio('reads: p99 ÷ bare Fastify', (each) => each.p99Ms),
    { name: 'reads: requests/s', value: spread(own.map((each) => each.perSecond)), unit: 'req/s' },
    { name: 'reads: CPU a request', value: spread(own.map((each) => each.cpuUsPerRequest)), unit: 'us' },
    {
      name: 'reads: CPU a request, bare',
      value: spread(base.map((each) => each.cpuUsPerRequest)),
      unit: 'us',
    },
    { name: 'reads: p99', value: spread(own.map((each) => each.p99Ms)), unit: 'ms' },
  ]
}
