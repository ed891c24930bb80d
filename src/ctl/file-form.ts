import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { formFrame, type FormPart } from './form.ts'

export interface StreamFormOptions {
  /** Parts before the file. */
  readonly parts: readonly FormPart[]
  /** Name of the file in the form. */
  readonly fileName: string
  /** Size of the file; one that has another size when it is sent is refused. */
  readonly sizeBytes: number
  /** Called with the number of bytes of the file in each piece. */
  readonly onSent: (bytes: number) => void
  /** The bytes of the file, for each attempt to send it. */
  readonly content: () => AsyncIterable<Buffer>
  /** What has changed if these are not as many as they should be, for the message. */
  readonly source: string
}

export interface FileFormOptions extends Omit<StreamFormOptions, 'content' | 'source'> {
  readonly path: string
}

const readBytes = 262_144

/** A form with a file of this machine as its last part, `uploadFile`, which is read while it is sent. */
export const fileForm = ({ path, ...options }: FileFormOptions) =>
  streamForm({
    ...options,
    source: path,
    content: () => createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>,
  })

/** A form with bytes as its last part, `uploadFile`, which are made while it is sent. */
export function streamForm({ parts, fileName, sizeBytes, onSent, content, source }: StreamFormOptions) {
  const { type, head, tail } = formFrame(parts, { name: 'uploadFile', fileName })
  async function* body() {
    yield head
    let left = sizeBytes
    for await (const chunk of content()) {
      left -= chunk.length
      if (left < 0) break
      onSent(chunk.length)
      yield chunk
    }
    if (left !== 0) throw new Failure('failed', `${printable(source)} was changed while it was sent`)
    yield tail
  }
  return {
    type,
    body: {
      sizeBytes: head.length + sizeBytes + tail.length,
      open: () => Readable.from(body(), { objectMode: false }),
    },
  }
}
