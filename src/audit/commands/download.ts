import { pipeline } from 'node:stream/promises'
import { isatty } from 'node:tty'
import { program } from '../../base/program.ts'
import { isFull } from '../../errors/system-reason.ts'
import { placeFile } from '../../system/place-file.ts'
import { removeOnSignal } from '../../program/remove-on-signal.ts'
import { OutputFailed } from '../../program/standard-output.ts'
import { notLoggedIn, type HostProgram } from '../../ctl/client.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { readReply, toFailure } from '../../ctl/reply.ts'

/**
 * The download of the trail into a file of this user alone, which is there when it is complete.
 * @param path of the list of the trail in the API
 */
export const downloadAudits =
  (path: string): HostProgram<'file'> =>
  async ({ client, line, output, target }) => {
    const day = new Date().toISOString().slice(0, 10)
    const file = line.options.file ?? `${program.daemon}-audit-${day}.tar`
    if (file === '-' && isatty(1))
      throw new Failure('usage', 'standard output is a terminal; redirect it, or name a file with --file')
    const message = await client.open({ method: 'GET', path: `${path}/download` })
    if (message.statusCode !== 200) {
      const failure = toFailure(await readReply(message))
      throw failure.exitName === 'notLoggedIn' ? notLoggedIn(target, failure) : failure
    }
    if (file === '-') {
      const write = async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) output.write(chunk)
      }
      await pipeline(message, write).catch(brokenOff)
      return undefined
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
      throw new Failure('failed', `${file} could not be written: ${(error as Error).message}`, {
        cause: error,
      })
    })
    output.note(`The audit trail is in ${file}.`)
    return undefined
  }

function brokenOff(error: unknown): never {
  // A partial archive is useless, also when its reader has ended.
  if (error instanceof OutputFailed)
    throw new Failure('failed', error.isClosed ? '' : error.message, { cause: error })
  throw new Failure('failed', `the archive is incomplete: ${(error as Error).message}`, { cause: error })
}
