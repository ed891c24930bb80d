import { isUtf8 } from 'node:buffer'
import { NoAnswer } from './failure.ts'
import { alignmentOf, maxDepth, parseSignature, type BusType } from './signature.ts'

/**
 * A value as it is handed on: 64-bit numbers as bigint, an array of bytes as such, every other array and a struct as
 * array, a dictionary as map.
 */
export type BusValue =
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Variant
  | readonly BusValue[]
  | ReadonlyMap<BusValue, BusValue>

/** A value that says of which type it is. */
export interface Variant {
  readonly signature: string
  readonly value: BusValue
}

export interface Reader {
  /** The next value of this type. @throws NoAnswer */
  read(type: BusType): BusValue
  /** Values of all types of a signature. */
  readAll(signature: string): readonly BusValue[]
  /** Skips the padding, which has to be zeros, in front of what begins at a multiple of `alignment`. */
  align(alignment: number): void
  position(): number
}

const objectPath = /^\/(?:[A-Za-z0-9_]+(?:\/[A-Za-z0-9_]+)*)?$/

/**
 * Reads values in either byte order, as the D-Bus Specification says under "Marshaling (Wire Format)". Nothing is read
 * beyond `bytes`, whose first byte is where alignment counts from.
 */
export function createReader(bytes: Buffer, isLittleEndian: boolean): Reader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  let depth = 0

  const take = (length: number): number => {
    if (length > bytes.length - at) throw malformed('ends too early')
    at += length
    return at - length
  }
  const align = (alignment: number) => {
    while (at % alignment !== 0) if (bytes[take(1)] !== 0) throw malformed('padding that is not zero')
  }
  const nested = <T>(read: () => T): T => {
    if (++depth > maxDepth) throw malformed(`nested deeper than ${maxDepth}`)
    const value = read()
    depth -= 1
    return value
  }

  const uint32 = () => view.getUint32(take(4), isLittleEndian)
  const text = (length: number): string => {
    const start = take(length + 1)
    const content = bytes.subarray(start, start + length)
    if (bytes[start + length] !== 0 || content.includes(0) || !isUtf8(content)) {
      throw malformed('a text that is none')
    }
    return content.toString('utf8')
  }
  const signature = () => text(bytes[take(1)] ?? 0)

  const boolean = (): boolean => {
    const value = uint32()
    if (value > 1) throw malformed(`the boolean ${value}`)
    return value === 1
  }
  const path = (): string => {
    const value = text(uint32())
    if (!objectPath.test(value)) throw malformed('an object path that is none')
    return value
  }
  const variant = (): Variant => {
    const name = signature()
    const [type, ...more] = parseSignature(name)
    if (type === undefined || more.length > 0) throw malformed('a variant of other than one type')
    return { signature: name, value: read(type) }
  }
  const array = (element: BusType): BusValue => {
    const length = uint32()
    align(alignmentOf(element))
    const end = at + length
    if (end > bytes.length) throw malformed('ends too early')
    if (element.code === 'y') return Uint8Array.from(bytes.subarray(take(length), end))
    const items: BusValue[] = []
    while (at < end) items.push(read(element))
    if (at !== end) throw malformed('an array of another length than it says')
    return element.code === '{' ? new Map(items as [BusValue, BusValue][]) : items
  }

  const read = (type: BusType): BusValue => {
    align(alignmentOf(type))
    switch (type.code) {
      case 'y':
        return view.getUint8(take(1))
      case 'b':
        return boolean()
      case 'n':
        return view.getInt16(take(2), isLittleEndian)
      case 'q':
        return view.getUint16(take(2), isLittleEndian)
      case 'i':
        return view.getInt32(take(4), isLittleEndian)
      // 'h' is the place of a file descriptor among those that came along; we take none.
      case 'u':
      case 'h':
        return uint32()
      case 'x':
        return view.getBigInt64(take(8), isLittleEndian)
      case 't':
        return view.getBigUint64(take(8), isLittleEndian)
      case 'd':
        return view.getFloat64(take(8), isLittleEndian)
      case 's':
        return text(uint32())
      case 'o':
        return path()
      case 'g': {
        const value = signature()
        parseSignature(value)
        return value
      }
      case 'v':
        return nested(variant)
      case 'a':
        return nested(() => array(type.element))
      case '(':
      case '{':
        return nested(() => type.fields.map(read))
    }
  }

  return {
    read,
    readAll: (name) => parseSignature(name).map(read),
    align,
    position: () => at,
  }
}

function malformed(detail: string): NoAnswer {
  return new NoAnswer('malformed', detail)
}
