import { execFile, execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { requireRoom, writeNoise } from './large-definition.ts'
import { startNginx } from './nginx.ts'
import { single, spread } from './numbers.ts'
import { addressOf, uidOf } from './platform-hosts.ts'
import { requireAll } from './platform-load.ts'
import { createPlatformRig, type PlatformRig } from './platform-rig.ts'
import type { Rig } from './rig.ts'
import { readCpuMs, readPeakMiB, readRssMiB, resetPeak } from './usage.ts'

const execute = promisify(execFile)

/**
 * What hosts download of their clusters: a large definition to twenty at once, against nginx with the same bytes, and the question of many hosts
 * whether it has changed, against a heartbeat. All clusters have the definition of one.
 */
export const measurePlatformDownloads: Measure = async (rig): Promise<Figure[]> => {
  const { megabytes, hosts, rounds, count } = rig.isQuick
    ? { megabytes: 50, hosts: 4, rounds: 1, count: 200 }
    : { megabytes: 500, hosts: 20, rounds: 3, count: 1_000 }
  // Pack, its copy in the state folder, and the definition; the copy of the definition for nginx is a link.
  requireRoom(rig.folder, 3.2 * megabytes * 1e6 + 1e9)
  const platform = await createPlatformRig(rig, 'downloads', count)
  rig.say('platform-downloads: a definition is built')
  const { file, etag } = await createClusters(rig, platform, megabytes, count)
  const own = await platform.start()
  await platform.hosts.run('logIn', { port: own.port, atOnce: 20 })
  const tokens = await platform.hosts.tokens(hosts)
  const folder = join(rig.folder, 'downloads-nginx')
  mkdirSync(join(folder, 'root'), { recursive: true })
  linkSync(file, join(folder, 'root', 'definition'))
  const { certificate } = platform
  const nginx = await startNginx({ folder, root: join(folder, 'root'), certificate, core: rig.cores?.server })

  const fetch = (port: number, pathOf: (index: number) => string, isOwn: boolean) => async () => {
    const startedAt = performance.now()
    await Promise.all(
      tokens.map((token, index) =>
        execute('taskset', [
          ...['--cpu-list', rig.cores ? String(rig.cores.load) : '0-1023'],
          ...['curl', '--silent', '--show-error', '--fail', '--output', '/dev/null', '--cacert', certificate],
          ...['--interface', addressOf(index), '--resolve', `localhost:${port}:127.0.0.1`],
          ...(isOwn ? ['--header', `authorization: ${token}`] : []),
          `https://localhost:${port}${pathOf(index)}`,
        ]),
      ),
    )
    return (performance.now() - startedAt) / 1_000
  }
  const fromOwn = fetch(own.port, (index) => `/v1/edgehosts/${uidOf(index)}/spc/download`, true)
  const fromNginx = fetch(nginx.port, () => '/definition', false)
  const used: number[] = []
  const base: number[] = []
  const idleMiB = readRssMiB(own.pid)
  resetPeak(own.pid)
  // Both have the file in the memory of the machine.
  for (const side of [fromOwn, fromNginx]) await side()
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`platform-downloads: round ${round + 1} of ${rounds}`)
    const sides = [async () => base.push(await fromNginx()), async () => used.push(await fromOwn())]
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side()
  }
  const moreMiB = readPeakMiB(own.pid) - idleMiB
  await nginx.stop()

  rig.say('platform-downloads: hosts ask whether it has changed')
  const costOf = async (order: 'beatKept' | 'askKept', outcome: string) => {
    const before = readCpuMs(own.pid)
    requireAll(await platform.hosts.run(order, { port: own.port, etag }), outcome)
    return ((readCpuMs(own.pid) - before) * 1_000) / count
  }
  // Each opens its connection, and the code is hot.
  requireAll(await platform.hosts.run('beatKept', { port: own.port }), '204')
  await platform.hosts.run('askKept', { port: own.port, etag })
  const [asked, beaten]: [number[], number[]] = [[], []]
  for (let round = 0; round < 5; round += 1) {
    beaten.push(await costOf('beatKept', '204 again'))
    asked.push(await costOf('askKept', '304 again'))
  }
  await Promise.all([own.stop(), platform.hosts.stop()])
  const what = `${megabytes} MB to ${hosts} hosts at once by curl, ${rounds} pairs`
  return [
    ratioFigure('platform downloads: time ÷ nginx over TLS', used, base, { target: '≤ 1.8', note: what }),
    { name: 'platform downloads: time', value: spread(used), unit: 's' },
    {
      name: 'platform downloads: memory above idle, peak',
      ...{ value: single(moreMiB), unit: 'MiB', target: '≤ 130 MiB' },
    },
    ratioFigure('platform downloads: CPU of a question without a change ÷ a heartbeat', asked, beaten, {
      target: '≤ 1.5',
      note: `${count} hosts on kept connections, 5 rounds`,
    }),
  ]
}

/** A cluster for each host, all with the definition of the first. */
async function createClusters(rig: Rig, platform: PlatformRig, megabytes: number, count: number) {
  const folder = join(rig.folder, 'downloads-packs')
  const layers = [
    ['edge-os', 'os'],
    ['edge-k8s', 'k8s'],
    ['cni', 'cni'],
    ['large', 'addon'],
  ] as const
  for (const [name, layer] of layers) writePack(join(folder, name), name, layer, megabytes)
  const profile = {
    metadata: { name: 'bench' },
    spec: {
      version: '1.0.0',
      template: {
        ...{ type: 'cluster', cloudType: 'edge-native' },
        packs: layers.map(([name, layer]) => ({
          ...{ name, layer, tag: '1.34.4', type: 'spectro', values: 'a: 1\n' },
        })),
      },
    },
  }
  writeFileSync(join(folder, 'profile.json'), JSON.stringify(profile))
  const server = await platform.start()
  const program = join(dirname(rig.entry), 'edgeplatformctl.cjs')
  const ctl = (...args: readonly string[]) =>
    execFileSync(process.execPath, [program, '--socket', platform.socketPath, ...args], { stdio: 'pipe' })
  for (const [name] of layers) ctl('pack', 'upload', join(folder, name))
  ctl('profile', 'import', join(folder, 'profile.json'))
  ctl('cluster', 'create', '--name', 'c-0', '--edge-host', uidOf(0), '--profile', 'bench@1.0.0')
  await server.stop()
  const sql = new DatabaseSync(join(platform.state, 'edgeplatform.db'))
  const row = sql.prepare('SELECT * FROM cluster').get()
  if (!row) throw new Error('no cluster was created')
  const insert = sql.prepare(
    `INSERT INTO cluster (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
      .map(() => '?')
      .join(', ')})`,
  )
  sql.exec('BEGIN')
  for (let index = 1; index < count; index += 1) {
    const copy = { ...row, uid: `0${uidOf(index).slice(1)}`, host_uid: uidOf(index), name: `c-${index}` }
    insert.run(...Object.values(copy))
  }
  sql.exec('COMMIT')
  sql.close()
  const kept = join(platform.state, 'clusters', String(row.files_uid))
  const name = readdirSync(kept).find((each) => each.endsWith('.tar.zst'))
  if (name === undefined) throw new Error(`${kept} has no definition`)
  return { file: join(kept, name), etag: `"${String(row.number)}-${String(row.digest).slice(0, 32)}"` }
}

function writePack(folder: string, name: string, layer: string, megabytes: number): void {
  mkdirSync(join(folder, 'charts'), { recursive: true })
  const charts = layer === 'addon' ? ['charts/large-1.0.0.tgz'] : []
  writeFileSync(join(folder, 'pack.json'), JSON.stringify({ name, version: '1.34.4', layer, charts }))
  writeFileSync(join(folder, 'values.yaml'), 'pack:\n  namespace: bench\n')
  for (const chart of charts) writeNoise(join(folder, chart), name, megabytes * 1e6)
}
