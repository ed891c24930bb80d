import { program } from '../base/program.ts'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'

/** A part of a form. */
interface FormPart {
  readonly name: string
  readonly fileName?: string
  readonly content: Buffer
}

/** Multipart form data, RFC 7578. */
export function formOf(parts: readonly FormPart[]): { type: string; body: Buffer } {
  const { type, head, tail } = formFrame(parts)
  return { type, body: Buffer.concat([head, tail]) }
}

/** The bytes of a form before and after the content of a part that comes last; without such a part, the whole form. */
function formFrame(parts: readonly FormPart[], last?: Omit<FormPart, 'content'>) {
  const boundary = `${program.ctl}-${crypto.randomUUID()}`
  const headOf = ({ name, fileName }: Omit<FormPart, 'content'>) => {
    const file = fileName === undefined ? '' : `; filename="${fileName.replaceAll(/["\\\r\n]/g, '_')}"`
    return Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`)
  }
  const lineEnd = Buffer.from('\r\n')
  const head = parts.flatMap((part) => [headOf(part), part.content, lineEnd])
  if (last) head.push(headOf(last))
  const tail = Buffer.from(`${last ? '\r\n' : ''}--${boundary}--\r\n`)
  return { type: `multipart/form-data; boundary=${boundary}`, head: Buffer.concat(head), tail }
}

interface StreamFormOptions {
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
  /** Name of the source, for the message that its size has changed. */
  readonly source: string
}

interface FileFormOptions extends Omit<StreamFormOptions, 'content' | 'source'> {
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
