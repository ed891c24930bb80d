import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { mediaTypes } from '../src/content/format/media-types.ts'
import { removeFolder, sendFile, startContentDaemon } from './content-rig.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { packLayout, writeLayout, type BenchLayout } from './large-bundle.ts'
import { requireRoom } from './large-definition.ts'
import { startNginx, type Nginx } from './nginx.ts'
import { spread } from './numbers.ts'
import type { Rig } from './rig.ts'
import { findPort } from './server-process.ts'

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
    ...{ images: 1, layersPerImage: 10, layerBytes: Math.ceil((megabytes * 1e6) / 10) },
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
  const [own, base]: [number[], number[]] = [[], []]
  try {
    if (!isTls) await sendFile(daemon, { certificate: rig.certificate, file, token: daemon.token })
    const password = readFileSync(join(dirname(dirname(rig.certificate)), 'registry-password'), 'utf8').trim()
    const trust = trustOf(rig)
    const sides = [
      async () => base.push(await copy(isTls ? nginx.port : nginx.httpPort, trust, isTls)),
      async () => own.push(await copy(port, trust, isTls, `edgehostd:${password}`)),
    ]
    // Both have the files in the memory of the machine.
    for (const pull of sides) await pull()
    own.length = base.length = 0
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`registry, ${isTls ? 'TLS' : 'HTTP'}: round ${round + 1} of ${rounds}`)
      // The order changes each round.
      for (const pull of round % 2 === 0 ? sides : sides.toReversed()) await pull()
    }
  } finally {
    await daemon.stop()
  }
  return { own, base }
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
