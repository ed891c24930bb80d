import { execFile, execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { mediaTypes } from '../src/content/format/media-types.ts'
import { removeFolder, sendFile, startContentDaemon } from './content.ts'
import {
  type Figure,
  type Measure,
  ratioFigure,
  readCpuMs,
  readPeakMiB,
  readRssMiB,
  resetPeak,
  single,
  spread,
  inTurns,
} from './figure.ts'
import { addressOf, requireAll, uidOf } from './hosts.ts'
import { type BenchLayout, packLayout, requireRoom, writeLayout, writeNoise } from './large-files.ts'
import { createPlatformRig, type PlatformRig } from './platform.ts'
import { findPort, type Rig, type ServerProcess, startServer } from './rig.ts'

const execute = promisify(execFile)
const image = 'bench/image-0'
const tag = '1.0'
// Of the memory, so that the disk of the client is not measured.
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** One image pulled by skopeo, against nginx with the same files. */
export const measureRegistry: Measure = async (rig): Promise<Figure[]> => {
  requirePrograms()
  const megabytes = rig.megabytes ?? (rig.isQuick ? 200 : 1_000)
  const rounds = rig.isQuick ? 2 : 5
  // The layout, its archive and the store; the copy.
  requireRoom(rig.folder, 3.1 * megabytes * 1e6 + 1e9)
  requireRoom(memory, 1.1 * megabytes * 1e6)
  rig.say('registry: building a bundle')
  const folder = join(rig.folder, 'registry')
  const layout = writeLayout(join(folder, 'layout'), {
    images: 1,
    layersPerImage: 10,
    layerBytes: Math.ceil((megabytes * 1e6) / 10),
  })
  const file = packLayout(layout, join(folder, 'bundle.tar.zst'))
  const nginx = await startRegistry(rig, layout, folder)
  const what = `${rounds} pairs of ${megabytes} MB in 10 layers, into memory`
  const figures: Figure[] = []
  try {
    for (const isTls of [false, true]) {
      const { own, base } = await compare(rig, { file, nginx, rounds, isTls })
      const name = `registry: skopeo copy ÷ the same from nginx, ${isTls ? 'TLS' : 'HTTP'}`
      figures.push(ratioFigure(name, own, base, { target: '≤ 1.15', note: what }), {
        name: `${name.split(' ÷')[0]}, ${isTls ? 'TLS' : 'HTTP'}`,
        value: spread(own),
        unit: 's',
      })
    }
  } finally {
    await nginx.stop()
    removeFolder(folder)
  }
  return figures
}

interface Comparison {
  readonly file: string
  readonly nginx: Nginx
  readonly rounds: number
  readonly isTls: boolean
}

/** Seconds of each copy. */
async function compare(rig: Rig, { file, nginx, rounds, isTls }: Comparison) {
  const port = await findPort()
  // A registry on any address but loopback is one with TLS.
  const address = isTls ? '0.0.0.0' : '127.0.0.1'
  const daemon = await startContentDaemon(rig, {
    settings: { 'content.registry.port': port, 'content.registry.address': address },
  })
  try {
    if (!isTls) await sendFile(daemon, { certificate: rig.certificate, file, token: daemon.token })
    const password = readFileSync(join(dirname(dirname(rig.certificate)), 'registry-password'), 'utf8').trim()
    const trust = trustOf(rig)
    const sides = {
      base: () => copy(isTls ? nginx.port : nginx.httpPort, trust, isTls),
      own: () => copy(port, trust, isTls, `edgehostd:${password}`),
    }
    // Both have the files in the memory of the machine.
    for (const pull of [sides.base, sides.own]) await pull()
    return await inTurns(rounds, sides, (round) => rig.say(`registry, ${isTls ? 'TLS' : 'HTTP'}: ${round}`))
  } finally {
    await daemon.stop()
  }
}

/** Pulls the image. @returns seconds */
async function copy(port: number, trust: string, isTls: boolean, login?: string): Promise<number> {
  const folder = mkdtempSync(join(memory, 'edgehostd-bench-copy-'))
  try {
    const args = [
      ...['copy', '--quiet', '--insecure-policy'],
      ...(isTls ? ['--src-cert-dir', trust] : ['--src-tls-verify=false']),
      ...(login === undefined ? ['--src-no-creds'] : ['--src-creds', login]),
      ...[`docker://127.0.0.1:${port}/${image}:${tag}`, `dir:${folder}`],
    ]
    const startedAt = performance.now()
    await execute('skopeo', args)
    return (performance.now() - startedAt) / 1_000
  } finally {
    removeFolder(folder)
  }
}

/** A folder with the certificate that skopeo trusts. */
function trustOf({ certificate, folder }: Rig): string {
  const trust = join(folder, 'trust')
  mkdirSync(trust, { recursive: true })
  copyFileSync(certificate, join(trust, 'ca.crt'))
  return trust
}

/** nginx with the files of the layout under the paths of a registry. */
async function startRegistry({ certificate }: Rig, layout: BenchLayout, folder: string): Promise<Nginx> {
  const root = join(folder, 'nginx')
  const blobs = join(root, 'v2', image, 'blobs')
  const manifests = join(root, 'v2', image, 'manifests')
  for (const each of [blobs, manifests]) mkdirSync(each, { recursive: true })
  for (const { sha256, file } of layout.blobs) linkSync(file, join(blobs, `sha256:${sha256}`))
  // The manifest of the only image is written last.
  const manifest = layout.blobs.at(-1)
  if (!manifest) throw new Error('the layout is empty')
  linkSync(manifest.file, join(manifests, tag))
  const locations = `    location = /v2/ { return 200 '{}'; }
    location ~ ^/v2/.+/manifests/ { default_type ${mediaTypes.manifest}; }`
  return startNginx({ folder, root, certificate, locations })
}

/** @throws Error that names the packages of missing programs */
function requirePrograms(): void {
  for (const [program, name] of [
    ['skopeo', 'skopeo'],
    ['nginx', 'nginx-light'],
  ] as const) {
    try {
      execFileSync('which', [program])
    } catch (error) {
      throw new Error(`${program} is not installed; run: apt-get install ${name}`, { cause: error })
    }
  }
}

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
  const idleMiB = readRssMiB(own.pid)
  resetPeak(own.pid)
  // Both have the file in the memory of the machine.
  for (const side of [fromOwn, fromNginx]) await side()
  const { own: used, base } = await inTurns(rounds, { base: fromNginx, own: fromOwn }, (round) =>
    rig.say(`platform-downloads: ${round}`),
  )
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
      value: single(moreMiB),
      unit: 'MiB',
      target: '≤ 130 MiB',
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
        type: 'cluster',
        cloudType: 'edge-native',
        packs: layers.map(([name, layer]) => ({
          name,
          layer,
          tag: '1.34.4',
          type: 'spectro',
          values: 'a: 1\n',
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

/** An nginx as Debian configures it. */
interface Nginx extends ServerProcess {
  readonly httpPort: number
}

interface NginxOptions {
  /** For its configuration and its log. */
  readonly folder: string
  /** What it serves. */
  readonly root: string
  /** PEM file, with `key.pem` beside it. */
  readonly certificate: string
  /** Further blocks of its server. */
  readonly locations?: string
  /** The only processor that it may use; undefined for all. */
  readonly core?: number | undefined
}

/** Starts nginx with the files of a folder, over TLS and over plain HTTP on loopback. */
async function startNginx(options: NginxOptions): Promise<Nginx> {
  const { folder, root, certificate, locations = '', core } = options
  const [port, httpPort] = [await findPort(), await findPort()]
  const configuration = join(folder, 'nginx.conf')
  writeFileSync(
    configuration,
    `user root;
worker_processes ${core === undefined ? 'auto' : '1'};
daemon off;
pid ${folder}/nginx.pid;
error_log stderr;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:${httpPort};
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${certificate};
    ssl_certificate_key ${join(dirname(certificate), 'key.pem')};
    ssl_protocols TLSv1.2 TLSv1.3;
    root ${root};
    location = /v1/ping { return 200; }
${locations}
  }
}
`,
  )
  const server = await startServer({
    command: ['nginx', '-e', 'stderr', '-c', configuration],
    port,
    certificate,
    path: '/v1/ping',
    log: join(folder, 'nginx.log'),
    core,
  })
  return { ...server, httpPort }
}
