/** A field of a message: a number for a varint, bytes for text, bytes and messages. */
interface WireField {
  readonly number: number
  readonly value: number | Buffer
}

/** The bytes are not a message. */
class WireError extends Error {
  override readonly name = 'WireError'
}

const [varint, fixed64, bytes, fixed32] = [0, 1, 2, 5]

/**
 * The fields of a message in the wire format of Protocol Buffers, in their order. Numbers above 2^53 lose their last digits.
 * Source: https://protobuf.dev/programming-guides/encoding/
 * @throws WireError
 */
export function* readFields(message: Buffer): Generator<WireField> {
  let at = 0
  const readVarint = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at]
      if (byte === undefined || factor > 2 ** 63) throw new WireError('a number of a message does not end')
      at += 1
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  const take = (length: number): Buffer => {
    if (length > message.length - at) throw new WireError('a message is shorter than it says')
    at += length
    return message.subarray(at - length, at)
  }
  while (at < message.length) {
    const tag = readVarint()
    const [number, type] = [Math.floor(tag / 8), tag % 8]
    if (type === varint) yield { number, value: readVarint() }
    else if (type === bytes) yield { number, value: take(readVarint()) }
    else if (type === fixed64) take(8)
    else if (type === fixed32) take(4)
    else throw new WireError(`a message has a field of type ${type}`)
  }
}

/** Text, or 0 for a number, of fields whose number is known. */
export const textOf = ({ value }: WireField): string => (typeof value === 'number' ? '' : value.toString())

/** The bytes of a message within a message; empty for a number. */
export const bytesOf = ({ value }: WireField): Buffer => (typeof value === 'number' ? Buffer.alloc(0) : value)

/** A field of text, as a message or a part of one. */
export function writeText(number: number, text: string): Buffer {
  const content = Buffer.from(text)
  return Buffer.concat([writeVarint(number * 8 + bytes), writeVarint(content.length), content])
}

/** A field that is a number. */
export const writeNumber = (number: number, value: number): Buffer =>
  Buffer.concat([writeVarint(number * 8 + varint), writeVarint(value)])

function writeVarint(value: number): Buffer {
  const written: number[] = []
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) written.push((rest % 128) | 128)
  return Buffer.from([...written, rest])
}

/** A runtime has answered with something that is not its interface. */
export class AnswerNotUnderstood extends Error {
  override readonly name = 'AnswerNotUnderstood'
}

/** A runtime has answered with more than is read. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'

  /** @param maximum bytes, or what else is counted */
  constructor(maximum: number | string) {
    super(`the answer has more than ${typeof maximum === 'number' ? `${maximum} bytes` : maximum}`)
  }
}

/** Whether an error says that there is no socket or file. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')

/** For `catch`: a host without the socket does not have the runtime. @throws other errors as they are */
export function absent(error: unknown): 'absent' {
  if (isAbsent(error)) return 'absent'
  throw error
}

/**
 * Why a runtime could not be read, for an operator: a sentence without its end.
 * @param unit of systemd that runs it
 */
export function explain(error: unknown, unit: string, limitMs: number): string {
  const look = `try: systemctl status ${unit}`
  const { name, code, message } = error as NodeJS.ErrnoException
  if (name === 'TimeoutError') return `it does not answer within ${limitMs / 1_000} s; ${look}`
  if (code === 'ECONNREFUSED') return `it does not run; ${look}`
  if (code === 'EACCES' || code === 'EPERM') return `the daemon may not read it: ${message}`
  if (code === 'ECONNRESET' || code === 'EPIPE') return `it closed the connection; ${look}`
  if (error instanceof AnswerTooLarge) return message
  if (error instanceof AnswerNotUnderstood || error instanceof WireError || error instanceof SyntaxError)
    return `its answer is not understood: ${message}; ${look}`
  return `it cannot be read: ${message}; ${look}`
}
