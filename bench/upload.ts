import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { administrator, sendDefinition, uploadDefinition, type WatchedUpload } from './definition-upload.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { buildLargeDefinition, requireRoom } from './large-definition.ts'
import { spread } from './numbers.ts'
import { logIn, type Rig } from './rig.ts'
import { findPort, startServer, type ServerProcess } from './server-process.ts'
import type { UploadResult } from './upload-client.ts'
import { readCpuMs, readRssMiB } from './usage.ts'

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

  const bareFile = join(rig.folder, 'body-of-the-baseline')
  const bare = await startBare(rig, bareFile)
  const sending = { certificate: rig.certificate, token, file }
  const own: Sent<WatchedUpload>[] = []
  const base: Sent[] = []
  const sides = [
    async () => base.push(await weigh(bare, () => sendDefinition(bare, sending))),
    async () => own.push(await weigh(daemon, () => uploadDefinition(daemon, sending))),
  ]
  try {
    for (let round = 0; round < rounds; round += 1) {
      rig.say(`upload: round ${round + 1} of ${rounds}`)
      // The order changes each round.
      for (const send of round % 2 === 0 ? sides : sides.toReversed()) await send()
      rmSync(bareFile)
    }
  } finally {
    await Promise.all([daemon.stop(), bare.stop()])
  }
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
    {
      name: 'upload: memory of examine.cjs, peak',
      value: spread(own.map(({ result }) => result.examineMiB)),
      unit: 'MiB',
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
  execFileSync('sync')
  const before = readCpuMs(pid, { children: true })
  const result = await send()
  const cpuMs = readCpuMs(pid, { children: true }) - before
  return { result, megabytesPerSecond: result.bytes / result.durationMs / 1_000, cpuMs }
}

async function startBare({ certificate, flags, folder }: Rig, file: string): Promise<ServerProcess> {
  const port = await findPort()
  const key = join(dirname(certificate), 'key.pem')
  const program = join(import.meta.dirname, 'file-server.ts')
  return startServer({
    command: [process.execPath, ...flags, program, String(port), key, certificate, file],
    ...{ port, certificate, path: '/v1/ping', log: join(folder, 'file-server.log') },
  })
}
