import { closeSync, openSync, readSync, createReadStream } from 'node:fs'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { systemReason } from '../errors/system-reason.ts'
import { isUtf8 } from 'node:buffer'
import { program } from '../base/program.ts'
import { Readable } from 'node:stream'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'

// Far larger than any body that a daemon accepts as JSON.
const usualLimitBytes = 16_777_216

/**
 * Reads a file that the user has named, or a pipe, such as <(…) of a shell; a device without an end is refused at the limit.
 * @param file - is standard input
 * @param name of the option or argument that names the file, for messages
 * @param limitBytes most bytes that are read
 * @throws Failure usage
 */
export function readBody(file: string, name: string, limitBytes = usualLimitBytes): Buffer {
  const body = createGrowingBuffer(limitBytes)
  const part = Buffer.allocUnsafe(65_536)
  try {
    const source = file === '-' ? 0 : openSync(file, 'r')
    try {
      for (let length = 0; (length = readSync(source, part)) > 0;)
        if (!body.add(part.subarray(0, length)))
          throw new Failure('usage', `${name}: ${printable(file)} has more than ${limitBytes} bytes`)
    } finally {
      if (source !== 0) closeSync(source)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(
      'usage',
      `${name}: ${printable(file)} cannot be read: ${systemReason(error as Error)}`,
      {
        cause: error,
      },
    )
  }
  return body.bytes()
}

/**
 * Reads a file of the user, YAML or JSON; - is standard input.
 * @param what the file has to be, for messages: `the body of POST /v1/things`
 * @throws Failure usage naming the file and the place where it is neither YAML nor JSON, without anything of its content
 */
export async function readMapping(file: string, what: string): Promise<object> {
  const refuse = (why: string, cause?: unknown) =>
    new Failure('usage', `FILE: ${printable(file)} ${why}`, { cause })
  const bytes = readBody(file, 'FILE')
  if (!isUtf8(bytes) || bytes.includes(0))
    throw refuse('is not text in UTF-8, so it is neither YAML nor JSON')
  const { parse, YAMLParseError } = await import('yaml')
  let parsed: unknown
  try {
    // JSON is YAML too.
    parsed = parse(bytes.toString(), { logLevel: 'error' })
  } catch (error) {
    if (error instanceof YAMLParseError && error.code === 'MULTIPLE_DOCS')
      throw refuse('has more than one YAML document; write one', error)
    // Below its first line is an excerpt; a quoted text is a part of the file too.
    const [reason = ''] = (error as Error).message.split('\n')
    throw refuse(`is not YAML or JSON: ${reason.replace(/: ".*"/, '').replace(/:$/, '')}`, error)
  }
  if (parsed === null) throw refuse(`is empty; write ${what}`)
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw refuse(`is not a mapping such as metadata: {name: shop}; write ${what}`)
  return parsed
}

/** The public keys of a file, a line each, without comments. @throws Failure usage, without anything of the file */
export function readKeys(file: string): string[] {
  const text = readBody(file, '--ssh-key').toString()
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw new Failure(
      'usage',
      `--ssh-key: ${printable(file)} has a private key, which stays where it is; give the public one, ${printable(file)}.pub`,
    )
  const keys = text
    .split(/\r?\n/)
    .map((each) => each.trim())
    .filter((each) => each !== '' && !each.startsWith('#'))
  if (keys.length === 0) throw new Failure('usage', `--ssh-key: ${printable(file)} has no key`)
  return keys
}

/** A public key by its type and comment; without a comment by its end, in which keys differ. */
export function shortKey(key: string): string {
  const [type = '', material = '', ...comment] = key.trim().split(/\s+/)
  return `${type} ${comment.length > 0 ? comment.join(' ') : `...${material.slice(-16)}`}`
}

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
