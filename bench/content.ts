import { execFile, execFileSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Sendings, UploadArgs, UploadResult } from './content-client.ts'
import {
  type Figure,
  inTurns,
  type Measure,
  ratioFigure,
  readCpuMs,
  readPeakMiB,
  readRssMiB,
  readTreeMiB,
  resetPeak,
  single,
  spread,
} from './figure.ts'
import {
  type BenchLayout,
  buildLargeDefinition,
  type LayoutPlan,
  packLayout,
  requireRoom,
  writeLayout,
} from './large-files.ts'
import { startProbe } from './probes.ts'
import {
  type Account,
  findPort,
  logIn,
  type Rig,
  type ServerProcess,
  type Settings,
  startServer,
} from './rig.ts'

const contentPath = '/v1/edge-mgmt/content'
const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'

/** A daemon that takes content, and the token of an administrator. */
export interface ContentDaemon extends ServerProcess {
  readonly token: string
}

/** What may differ from the daemon of the other figures. */
type ContentOptions = Pick<
  NonNullable<Parameters<Rig['startDaemon']>[0]>,
  'entry' | 'flags' | 'environment' | 'settings'
>

/** Starts the daemon with an administrator who is logged in. The reserve of its disk is small. */
export async function startContentDaemon(rig: Rig, options: ContentOptions = {}): Promise<ContentDaemon> {
  const settings = {
    ...options.settings,
    ...administrator(rig.accounts.good),
    'content.reserve.percent': 0,
    'content.reserve.leastBytes': 0,
  }
  const daemon = await rig.startDaemon({ ...options, settings })
  const client = rig.client(daemon)
  try {
    return { ...daemon, token: await logIn(client, rig.accounts.good) }
  } finally {
    client.close()
  }
}

/** Starts the baseline; `folder` is where it writes. */
async function startContentBaseline(
  { certificate, flags, folder }: Rig,
  environment: NodeJS.ProcessEnv = {},
): Promise<ServerProcess & { readonly folder: string }> {
  const port = await findPort()
  const key = join(dirname(certificate), 'key.pem')
  const program = join(import.meta.dirname, 'content-server.ts')
  const unpacked = join(folder, 'baseline')
  const server = await startServer({
    command: [process.execPath, ...flags, program, String(port), key, certificate, unpacked],
    port,
    certificate,
    path: '/v1/ping',
    log: join(folder, 'content-server.log'),
    environment,
  })
  return { ...server, folder: unpacked }
}

/** Bytes of the bundles; `images` of ten layers. */
export function planOf({ megabytes, isQuick }: Rig): LayoutPlan & { readonly megabytes: number } {
  const size = megabytes ?? (isQuick ? 200 : 2_000)
  const [images, layersPerImage] = [20, 10]
  const layerBytes = Math.ceil((size * 1e6) / (images * layersPerImage))
  return { megabytes: size, images, layersPerImage, layerBytes }
}

type FileSending = Pick<UploadArgs, 'certificate' | 'token' | 'file' | 'isBare'>

/** Sends a file from a process of its own. @throws Error when the answer is not 201 */
export async function sendFile({ port }: ServerProcess, sending: FileSending): Promise<UploadResult> {
  const args = { ...sending, port, path: sending.isBare ? '/bundle' : uploadPath }
  const result = await runClient('file', args)
  if (result.status !== 201) throw new Error(`the upload answers ${result.status}: ${result.body}`)
  return result
}

/** Runs the client in a process of its own. */
async function runClient<Kind extends keyof Sendings>(
  kind: Kind,
  args: Sendings[Kind]['args'],
): Promise<Sendings[Kind]['result']> {
  const program = join(import.meta.dirname, 'content-client.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, kind, JSON.stringify(args)], {
    maxBuffer: 16_777_216,
  })
  return JSON.parse(stdout) as Sendings[Kind]['result']
}

/** Deletes all bundles, so that the next upload is written whole. */
export async function emptyStore(rig: Rig, daemon: ContentDaemon): Promise<void> {
  const client = rig.client(daemon)
  try {
    const { token } = daemon
    const list = await client.send('GET', `${contentPath}/bundles`, { token })
    const { items } = JSON.parse(list.body.toString()) as { items: readonly { uid: string }[] }
    for (const { uid } of items) {
      const { status, body } = await client.send('DELETE', `${contentPath}/bundles/${uid}`, { token })
      if (status >= 300) throw new Error(`the removal of a bundle answers ${status}: ${body.toString()}`)
    }
  } finally {
    client.close()
  }
}

/** So that an upload does not wait for bytes of the one before that are not yet on the disk. */
export const syncDisks = () => execFileSync('sync')

export const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true })

// OPENSSL_ia32cap(3): bit 29 of the second word is that of the SHA instructions.
const shaVariable = 'OPENSSL_ia32cap'
const withoutSha = ':~0x20000000'

/** Upload of a bundle as a file, until it is published, against the same TLS and the programs of the system. */
export const measureContentFile: Measure = async (rig): Promise<Figure[]> => {
  const plan = planOf(rig)
  const rounds = rig.isQuick ? 2 : 3
  // The layout, its archive, the store and the folder of the baseline.
  requireRoom(rig.folder, 4.1 * plan.megabytes * 1e6 + 1e9)
  rig.say('content-file: building a bundle')
  const folder = join(rig.folder, 'layout')
  const file = packLayout(writeLayout(folder, plan), join(rig.folder, 'bundle.tar.zst'))
  removeFolder(folder)
  const what = `${rounds} pairs of ${plan.megabytes} MB, from the first byte to the 201`
  try {
    const fast = await compareFiles(rig, file, { rounds, isShaUsed: true })
    const slow = await compareFiles(rig, file, { rounds, isShaUsed: false })
    const { daemonMiB, treeMiB, treePssMiB, idleMiB, idlePssMiB } = await measureMemory(rig, file)
    return [
      ratioFigure('content-file: time ÷ tee, openssl dgst, zstd, tar, sync', fast.own, fast.base, {
        target: '≤ 1.30',
        note: what,
      }),
      ratioFigure('content-file: the same without SHA instructions', slow.own, slow.base, {
        target: '≤ 1.60',
        note: `${shaVariable}=${withoutSha} for all processes of both sides`,
      }),
      {
        name: 'content-file: memory of daemon and children above idle, peak',
        value: single(treeMiB - idleMiB),
        unit: 'MiB',
        target: '≤ 95 (100 MB)',
        note: [
          `RSS, window of 8 MiB; each shared page counted once ${(treePssMiB - idlePssMiB).toFixed(0)} MiB`,
          `the daemon alone ${(daemonMiB - idleMiB).toFixed(0)} MiB`,
          `idle, after a login, ${idleMiB.toFixed(0)} MiB`,
        ].join('; '),
      },
      { name: 'content-file: time', value: spread(fast.own), unit: 's' },
      { name: 'content-file: time of the baseline', value: spread(fast.base), unit: 's' },
    ]
  } finally {
    removeFolder(file)
  }
}

/** Seconds of both sides. */
async function compareFiles(
  rig: Rig,
  file: string,
  { rounds, isShaUsed }: { readonly rounds: number; readonly isShaUsed: boolean },
) {
  const options: ContentOptions = isShaUsed ? {} : buildWithoutSha(rig)
  const daemon = await startContentDaemon(rig, options)
  const bare = await startContentBaseline(rig, options.environment)
  const { certificate } = rig
  const sides = {
    async base() {
      syncDisks()
      const { durationMs } = await sendFile(bare, { certificate, file, token: '', isBare: true })
      removeFolder(bare.folder)
      return durationMs / 1_000
    },
    async own() {
      syncDisks()
      const { durationMs } = await sendFile(daemon, { certificate, file, token: daemon.token })
      await emptyStore(rig, daemon)
      return durationMs / 1_000
    },
  }
  try {
    return await inTurns(rounds, sides, (round) =>
      rig.say(`content-file${isShaUsed ? '' : ', without SHA'}: ${round}`),
    )
  } finally {
    await Promise.all([daemon.stop(), bare.stop()])
  }
}

/** An upload of its own, since reading /proc would delay the others. */
async function measureMemory(rig: Rig, file: string) {
  rig.say('content-file: memory')
  const { certificate } = rig
  const daemon = await startContentDaemon(rig)
  try {
    const [idleMiB, idlePssMiB] = [readRssMiB(daemon.pid), readTreeMiB(daemon.pid)]
    const probe = await startProbe('rss', { pid: daemon.pid })
    await sendFile(daemon, { certificate, file, token: daemon.token })
    const seen = await probe.stop()
    await emptyStore(rig, daemon)
    return { ...seen, idleMiB, idlePssMiB }
  } finally {
    await daemon.stop()
  }
}

/**
 * A copy of the build whose programs get the variable too: the daemon passes nothing of its environment on to them.
 * @throws Error when the place in the bundle is not found
 */
function buildWithoutSha({ entry, folder }: Rig): ContentOptions {
  const copy = join(folder, 'build-without-sha')
  cpSync(dirname(entry), copy, { recursive: true })
  const daemon = join(copy, 'daemon.cjs')
  const bundle = readFileSync(daemon, 'utf8')
  const parts = bundle.split(/(?<=[,{]LC_ALL:\s?"C",)/)
  if (parts.length !== 2)
    throw new Error(`${daemon} has ${parts.length - 1} environments of programs, not one`)
  writeFileSync(daemon, parts.join(`${shaVariable}:${JSON.stringify(withoutSha)},`))
  return { entry: join(copy, basename(entry)), environment: { [shaVariable]: withoutSha } }
}

/**
 * Upload of a bundle blob by blob over one connection, until it is published, against a server that hashes and writes each
 * body; then a bundle of which 1 % of the bytes are in other blobs.
 */
export const measureContentBlobs: Measure = async (rig): Promise<Figure[]> => {
  const plan = planOf(rig)
  const rounds = rig.isQuick ? 2 : 3
  // The layout, the store and the folder of the baseline.
  requireRoom(rig.folder, 3.1 * plan.megabytes * 1e6 + 1e9)
  rig.say('content-blobs: building bundles')
  const folder = join(rig.folder, 'layout')
  const layout = writeLayout(folder, plan)
  const changedLayers = Math.round((plan.images * plan.layersPerImage) / 100)
  const changed = writeLayout(folder, { ...plan, changedLayers }, 'changed-index.json')
  const daemon = await startContentDaemon(rig)
  const bare = await startContentBaseline(rig)
  const { certificate } = rig
  const sending = ({ index, blobs }: BenchLayout) => {
    const list = join(rig.folder, 'blobs.json')
    writeFileSync(list, JSON.stringify(blobs))
    return { certificate, index, blobs: list }
  }
  const { port, token, pid } = daemon
  const sides = {
    async base() {
      syncDisks()
      const { durationMs } = await runClient('blobs', { ...sending(layout), port: bare.port, token: '' })
      removeFolder(bare.folder)
      return durationMs / 1_000
    },
    async own() {
      await emptyStore(rig, daemon)
      syncDisks()
      return (await runClient('blobs', { ...sending(layout), port, token })).durationMs / 1_000
    },
  }
  try {
    const { own, base } = await inTurns(rounds, sides, (round) => rig.say(`content-blobs: ${round}`))
    rig.say('content-blobs: a bundle with other blobs')
    const probe = await startProbe('written', { pid })
    const { sentBytes, sentBlobs } = await runClient('blobs', { ...sending(changed), port, token })
    const { bytes: writtenBytes } = await probe.stop()
    await emptyStore(rig, daemon)
    const percent = (bytes: number) => single((bytes / changed.sizeBytes) * 100)
    const what = `${changedLayers} of ${plan.images * plan.layersPerImage} layers are other ones; ${sentBlobs} blobs were sent`
    return [
      ratioFigure('content-blobs: time ÷ hashing and writing alone', own, base, {
        target: '≤ 1.20',
        note: `${rounds} pairs of ${plan.megabytes} MB in ${layout.blobs.length} blobs, with publication and sync`,
      }),
      {
        name: 'content-blobs: 1 % in other blobs, sent',
        value: percent(sentBytes),
        unit: '%',
        target: '≤ 3 %',
        note: what,
      },
      {
        name: 'content-blobs: 1 % in other blobs, written',
        value: percent(writtenBytes),
        unit: '%',
        target: '≤ 3 %',
        note: 'write_bytes of the daemon and its children: content, database, record',
      },
      { name: 'content-blobs: time', value: spread(own), unit: 's' },
      { name: 'content-blobs: time of the baseline', value: spread(base), unit: 's' },
    ]
  } finally {
    await Promise.all([daemon.stop(), bare.stop()])
    removeFolder(folder)
  }
}

interface Sent<Result extends UploadResult = UploadResult> {
  readonly result: Result
  readonly megabytesPerSecond: number
  /** Processor time of the server and of the processes that it started for the upload. */
  readonly cpuMs: number
}

/** Upload of a definition, until it is checked and on the disk, against a server that only hashes and writes the body. */
export const measureUpload: Measure = async (rig): Promise<Figure[]> => {
  const { rounds, contentBytes } = rig.isQuick
    ? { rounds: 2, contentBytes: 200_000_000 }
    : { rounds: 3, contentBytes: 2_000_000_000 }
  // The archive, an upload in its slot, the next upload, and the file of the baseline.
  requireRoom(rig.folder, 4.1 * contentBytes + 1e9)
  rig.say('upload: building a definition')
  const file = await buildLargeDefinition(rig.folder, contentBytes)
  const daemon = await rig.startDaemon({ settings: administrator(rig.accounts.good) })
  const client = rig.client(daemon)
  const token = await logIn(client, rig.accounts.good)
  client.close()
  const idleMiB = readRssMiB(daemon.pid)

  const bare = await startContentBaseline(rig)
  const sending = { certificate: rig.certificate, token, file }
  const sides = {
    async base() {
      const sent = await weigh(bare, () => sendDefinition(bare, sending))
      removeFolder(bare.folder)
      return sent
    },
    own: () => weigh(daemon, () => uploadDefinition(daemon, sending)),
  }
  const { own, base } = await inTurns(rounds, sides, (round) => rig.say(`upload: ${round}`)).finally(() =>
    Promise.all([daemon.stop(), bare.stop()]),
  )
  rmSync(file)
  rmSync(join(rig.folder, 'state', 'definitions'), { recursive: true })

  const speed = ({ megabytesPerSecond }: Sent) => megabytesPerSecond
  const cpu = ({ cpuMs }: Sent) => cpuMs
  return [
    ratioFigure('upload: throughput ÷ hashing and writing alone', own.map(speed), base.map(speed), {
      target: '≥ 0.70',
      note: `${rounds} pairs of ${contentBytes / 1e6} MB, from the first byte to the 201`,
    }),
    ratioFigure('upload: CPU ÷ hashing and writing alone', own.map(cpu), base.map(cpu), {
      note: 'with that of examine.cjs, which unpacks the archive and hashes what is in it',
    }),
    {
      name: 'upload: memory of the daemon above idle, peak',
      value: spread(own.map(({ result }) => result.daemonMiB - idleMiB)),
      unit: 'MiB',
      target: '≤ 57 (60 MB)',
      note: `idle, after a login, ${idleMiB.toFixed(0)} MiB`,
    },
    { name: 'upload: throughput', value: spread(own.map(speed)), unit: 'MB/s' },
    { name: 'upload: throughput, hashing and writing alone', value: spread(base.map(speed)), unit: 'MB/s' },
  ]
}

async function weigh<Result extends UploadResult>(
  { pid }: ServerProcess,
  send: () => Promise<Result>,
): Promise<Sent<Result>> {
  // So that this upload does not wait for bytes of the one before that are not yet on the disk.
  syncDisks()
  const before = readCpuMs(pid, { children: true })
  const result = await send()
  const cpuMs = readCpuMs(pid, { children: true }) - before
  return { result, megabytesPerSecond: result.bytes / result.durationMs / 1_000, cpuMs }
}

const definitionPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'

/** Uploads need an administrator; useradd(8) gives each account a group of its own name. */
const administrator = ({ userName }: Account): Settings => ({ 'auth.adminGroups': userName })

/**
 * Sends a file to the daemon, or to the baseline that accepts every body, from a process of its own.
 * @throws Error when the answer is not 201
 */
async function sendDefinition(
  { port }: Pick<ServerProcess, 'port'>,
  sending: FileSending,
): Promise<UploadResult> {
  const result = await runClient('file', { ...sending, port, path: definitionPath })
  if (result.status !== 201) throw new Error(`the upload answers ${result.status}: ${result.body}`)
  return result
}

/** An upload, and the peak of resident memory during it. */
interface WatchedUpload extends UploadResult {
  readonly daemonMiB: number
}

async function uploadDefinition(daemon: ServerProcess, sending: FileSending): Promise<WatchedUpload> {
  const { pid } = daemon
  resetPeak(pid)
  const result = await sendDefinition(daemon, sending)
  return { ...result, daemonMiB: readPeakMiB(pid) }
}
