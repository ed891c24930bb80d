import { pipeline } from 'node:stream/promises'
import { isatty } from 'node:tty'
import { isFull } from '../errors/system-reason.ts'
import { removeOnSignal } from '../program/remove-on-signal.ts'
import { OutputFailed } from '../program/standard-output.ts'
import { placeFile } from '../system/place-file.ts'
import { refusalOf, type Context } from './client.ts'
import { Failure } from './exit-codes.ts'
import { foreignReply, readReply } from './reply.ts'

interface Download {
  /** Path of the API. */
  readonly path: string
  /** File of this user; - is standard output. */
  readonly file: string
  /** What it is, for messages: `the archive`. */
  readonly what: string
  /** Media type that the reply must have; absent: any. */
  readonly type?: string
}

/**
 * Downloads a reply into a file of this user alone, which is there when it is complete, or to standard output.
 * @throws Failure
 */
export async function download(
  { client, output, target }: Pick<Context, 'client' | 'output' | 'target'>,
  { path, file, what, type }: Download,
): Promise<void> {
  if (file === '-' && isatty(1))
    throw new Failure('usage', 'standard output is a terminal; redirect it, or name a file with --file')
  const message = await client.open({ method: 'GET', path })
  if (message.statusCode !== 200) throw refusalOf(target, await readReply(message))
  if (type !== undefined && message.headers['content-type'] !== type) {
    message.destroy()
    throw foreignReply(`it is not ${type}`)
  }
  const brokenOff = (error: unknown): never => {
    // A partial file is useless, also when its reader has ended.
    if (error instanceof OutputFailed)
      throw new Failure('failed', error.isClosed ? '' : error.message, { cause: error })
    throw new Failure('failed', `${what} is incomplete: ${(error as Error).message}`, { cause: error })
  }
  if (file === '-') {
    const write = async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) output.write(chunk)
    }
    await pipeline(message, write).catch(brokenOff)
    return
  }
  await placeFile({
    path: file,
    mode: 0o600,
    onBegin: removeOnSignal(),
    write: (handle) =>
      pipeline(message, handle.createWriteStream({ flush: true })).catch((error: unknown) => {
        // A full disk is no fault of the host.
        if (isFull(error)) throw error
        brokenOff(error)
      }),
  }).catch((error: unknown) => {
    if (error instanceof Failure) throw error
    throw new Failure('failed', `${file} could not be written: ${(error as Error).message}`, { cause: error })
  })
}
