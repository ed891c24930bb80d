import { execFile, execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { BlobClientArgs, BlobClientResult } from './blob-client.ts'
import type { LayoutPlan } from './large-bundle.ts'
import { administrator } from './definition-upload.ts'
import { logIn, type Rig } from './rig.ts'
import { findPort, startServer, type ServerProcess } from './server-process.ts'
import type { UploadArgs, UploadResult } from './upload-client.ts'

const execute = promisify(execFile)
const contentPath = '/v1/edge-mgmt/content'
const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'

/** A daemon that takes content, and the token of an administrator. */
export interface ContentDaemon extends ServerProcess {
  readonly token: string
}

/** What may differ from the daemon of the other figures. */
export type StartOptions = Pick<
  NonNullable<Parameters<Rig['startDaemon']>[0]>,
  'entry' | 'flags' | 'environment' | 'settings'
>

/** Starts the daemon with an administrator who is logged in. The reserve of its disk is small. */
export async function startContentDaemon(rig: Rig, options: StartOptions = {}): Promise<ContentDaemon> {
  const settings = {
    ...options.settings,
    ...administrator(rig.accounts.good),
    ...{ 'content.reserve.percent': 0, 'content.reserve.leastBytes': 0 },
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
export async function startContentBaseline(
  { certificate, flags, folder }: Rig,
  environment: NodeJS.ProcessEnv = {},
): Promise<ServerProcess & { readonly folder: string }> {
  const port = await findPort()
  const key = join(dirname(certificate), 'key.pem')
  const program = join(import.meta.dirname, 'content-server.ts')
  const unpacked = join(folder, 'baseline')
  const server = await startServer({
    command: [process.execPath, ...flags, program, String(port), key, certificate, unpacked],
    ...{ port, certificate, path: '/v1/ping', log: join(folder, 'content-server.log'), environment },
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

export type FileSending = Pick<UploadArgs, 'certificate' | 'token' | 'file' | 'isBare'>

/** Sends a file from a process of its own. @throws Error when the answer is not 201 */
export async function sendFile({ port }: ServerProcess, sending: FileSending): Promise<UploadResult> {
  const args: UploadArgs = { ...sending, port, path: sending.isBare ? '/bundle' : uploadPath }
  const result = await runClient<UploadResult>('upload-client.ts', args)
  if (result.status !== 201) throw new Error(`the upload answers ${result.status}: ${result.body}`)
  return result
}

/** Sends blobs one after the other, from a process of its own. @throws Error when a request fails */
export const sendBlobs = (args: BlobClientArgs): Promise<BlobClientResult> =>
  runClient<BlobClientResult>('blob-client.ts', args)

async function runClient<Result>(program: string, args: unknown): Promise<Result> {
  const path = join(import.meta.dirname, program)
  const { stdout } = await execute(process.execPath, [path, JSON.stringify(args)], {
    maxBuffer: 16_777_216,
  })
  return JSON.parse(stdout) as Result
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
