import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { formFrame, type FormPart } from './form.ts'

export interface FileFormOptions {
  /** Parts before the file. */
  readonly parts: readonly FormPart[]
  readonly path: string
  /** Name of the file in the form. */
  readonly fileName: string
  /** Size of the file; one that has another size when it is sent is refused. */
  readonly sizeBytes: number
  /** Called with the number of bytes of the file in each piece. */
  readonly onSent: (bytes: number) => void
}

const readBytes = 262_144

/** A form with a file of this machine as its last part, `uploadFile`, which is read while it is sent. */
export function fileForm({ parts, path, fileName, sizeBytes, onSent }: FileFormOptions) {
  const { type, head, tail } = formFrame(parts, { name: 'uploadFile', fileName })
  async function* body() {
    yield head
    let left = sizeBytes
    for await (const chunk of createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>) {
      left -= chunk.length
      if (left < 0) break
      onSent(chunk.length)
      yield chunk
    }
    if (left !== 0) throw new Failure('failed', `${printable(path)} was changed while it was sent`)
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
