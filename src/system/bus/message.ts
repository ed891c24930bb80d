import { NoAnswer } from './failure.ts'
import { createReader, type BusValue, type Variant } from './reader.ts'

/** A method to call. Its arguments are texts: nothing else is ever sent. */
export interface MethodCall {
  /** Name on the bus. */
  readonly service: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly texts?: readonly string[]
}

/** A message that came; the body is read when somebody waits for it. */
export interface Message {
  readonly type: number
  /** Serial of the call that this answers. */
  readonly replySerial: number | undefined
  readonly errorName: string | undefined
  readBody(): readonly BusValue[]
}

/** No reply that is asked for comes near it; the specification allows 128 MiB. */
export const maxMessageBytes = 1_048_576
export const messageTypes = { methodCall: 1, methodReturn: 2, error: 3 } as const

const fixedHeaderBytes = 16
const protocolVersion = 1
// A question must not start what it asks for.
const noAutoStart = 2
// Header fields and the types they have to have, where we use them.
const fields = {
  path: 1,
  interface: 2,
  member: 3,
  errorName: 4,
  replySerial: 5,
  destination: 6,
  signature: 8,
}
const usedFields = new Map([
  [fields.errorName, 's'],
  [fields.replySerial, 'u'],
  [fields.signature, 'g'],
])
/** Writes a method call, little-endian, as the D-Bus Specification says under "Message Format". */
export function writeCall(call: MethodCall, serial: number): Buffer {
  const { texts = [] } = call
  const body = aligned(4, texts.map(textBytes))
  const header = aligned(8, [
    field(fields.path, 'o', textBytes(call.path)),
    field(fields.interface, 's', textBytes(call.interface)),
    field(fields.member, 's', textBytes(call.member)),
    field(fields.destination, 's', textBytes(call.service)),
    ...(texts.length > 0 ? [field(fields.signature, 'g', signatureBytes('s'.repeat(texts.length)))] : []),
  ])
  const start = Buffer.alloc(fixedHeaderBytes)
  start.set([0x6c, messageTypes.methodCall, noAutoStart, protocolVersion])
  start.writeUInt32LE(body.length, 4)
  start.writeUInt32LE(serial, 8)
  start.writeUInt32LE(header.length, 12)
  // The body begins at a multiple of 8 even where it is empty.
  return aligned(8, [start, header, body])
}

/**
 * How long the message is that begins here; undefined while too little of it is there to say.
 * @throws NoAnswer when none begins here, or one that is too large
 */
export function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < fixedHeaderBytes) return undefined
  const isLittleEndian = isLittle(bytes)
  const uint32 = (at: number) => (isLittleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at))
  if (bytes[1] === 0 || bytes[3] !== protocolVersion || uint32(8) === 0) {
    throw new NoAnswer('malformed', 'no message of D-Bus')
  }
  const length = fixedHeaderBytes + padded(uint32(12), 8) + uint32(4)
  if (length > maxMessageBytes) throw new NoAnswer('too-large', `${length} bytes`)
  return length
}

/**
 * Reads a whole message, as long as `messageLength` says.
 * @throws NoAnswer when its header is malformed, and `readBody` when its body is
 */
export function readMessage(bytes: Buffer): Message {
  const reader = createReader(bytes, isLittle(bytes))
  const [, type, , , bodyLength, , entries] = reader.readAll('yyyyuua(yv)') as HeaderValues
  reader.align(8)
  if (reader.position() + bodyLength !== bytes.length)
    throw new NoAnswer('malformed', 'a body of another length')
  const known = new Map<number, BusValue>()
  for (const [code, { signature, value }] of entries) {
    if ((usedFields.get(code) ?? signature) !== signature) {
      throw new NoAnswer('malformed', `a header field ${code} of type ${signature}`)
    }
    known.set(code, value)
  }
  const signature = (known.get(fields.signature) ?? '') as string
  return {
    type,
    replySerial: known.get(fields.replySerial) as number | undefined,
    errorName: known.get(fields.errorName) as string | undefined,
    readBody() {
      const values = reader.readAll(signature)
      if (reader.position() !== bytes.length) throw new NoAnswer('malformed', 'a body of another length')
      return values
    },
  }
}

// What the signature of a header makes certain.
type HeaderValues = readonly [
  ...(readonly [order: number, type: number, flags: number, version: number]),
  ...(readonly [bodyLength: number, serial: number]),
  readonly (readonly [code: number, value: Variant])[],
]

function isLittle(bytes: Buffer): boolean {
  if (bytes[0] !== 0x6c && bytes[0] !== 0x42) throw new NoAnswer('malformed', 'no message of D-Bus')
  return bytes[0] === 0x6c
}

/** A field of the header: a struct of its code and a variant. */
function field(code: number, type: string, value: Buffer): Buffer {
  const start = Buffer.from([code, 1, type.charCodeAt(0), 0])
  return Buffer.concat([start, value])
}

function textBytes(text: string): Buffer {
  const content = Buffer.from(text, 'utf8')
  const length = Buffer.alloc(4)
  length.writeUInt32LE(content.length)
  return Buffer.concat([length, content, Buffer.alloc(1)])
}

function signatureBytes(signature: string): Buffer {
  return Buffer.from([signature.length, ...Buffer.from(signature), 0])
}

/** Puts parts one after the other, each where its alignment lets it begin. */
function aligned(alignment: number, parts: readonly Buffer[]): Buffer {
  const laid: Buffer[] = []
  let length = 0
  for (const part of parts) {
    const padding = padded(length, alignment) - length
    laid.push(Buffer.alloc(padding), part)
    length += padding + part.length
  }
  return Buffer.concat(laid)
}

function padded(length: number, alignment: number): number {
  return Math.ceil(length / alignment) * alignment
}
