import { createSlices } from '../../base/slices.ts'
import { AnswerNotUnderstood, AnswerTooLarge } from './wire.ts'

export interface ElementLimits {
  /** Limit of the whole text. */
  readonly maximumBytes: number
  /** Limit of one element. */
  readonly elementBytes: number
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c]
const isOpening = (byte: number) => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number) => byte === 0x7d || byte === 0x5d
const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * Parses a JSON array of objects element by element while it arrives, so that one of 10,000 elements does not stop the event loop. The
 * bytes are only searched for the ends of the elements; each element is parsed by JSON.parse.
 * @param chunks not empty
 * @throws AnswerTooLarge, AnswerNotUnderstood, SyntaxError of an element
 */
export async function* readElements(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  { maximumBytes, elementBytes }: ElementLimits,
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const rest = createSlices()
  let total = 0
  let depth = 0
  let isText = false
  let isEscaped = false
  let isEnded = false
  /** Bytes of the element that earlier chunks had. */
  let pieces: Buffer[] = []
  let pieceBytes = 0

  for await (const chunk of chunks) {
    total += chunk.length
    if (total > maximumBytes) throw new AnswerTooLarge(maximumBytes)
    let begin = 0
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0
      if (isText) {
        if (isEscaped) isEscaped = false
        else if (byte === backslash) isEscaped = true
        else if (byte === quote) isText = false
        continue
      }
      if (isOpening(byte)) {
        depth += 1
        if (depth === 1 && byte !== 0x5b) throw new AnswerNotUnderstood('it is not a list')
        if (depth === 2) begin = at
      } else if (isClosing(byte)) {
        depth -= 1
        if (depth === 0) isEnded = true
        if (depth === 1) {
          pieces.push(chunk.subarray(begin, at + 1))
          yield parseElement(Buffer.concat(pieces))
          pieces = []
          pieceBytes = 0
          await rest()
        }
      } else if (byte === quote && depth > 1) isText = true
      else if (depth < 2 && !isSpace(byte) && !(byte === comma && depth === 1))
        throw new AnswerNotUnderstood('it is not a list of objects')
      if (isEnded && depth !== 0) throw new AnswerNotUnderstood('something follows the list')
    }
    if (depth > 1) {
      pieces.push(chunk.subarray(pieces.length === 0 ? begin : 0))
      pieceBytes += chunk.length
      if (pieceBytes > elementBytes) throw new AnswerTooLarge(elementBytes)
    }
    await rest()
  }
  if (!isEnded) throw new AnswerNotUnderstood('it is cut off')
}

function parseElement(bytes: Buffer): Readonly<Record<string, unknown>> {
  const element: unknown = JSON.parse(bytes.toString())
  if (typeof element !== 'object' || element === null)
    throw new AnswerNotUnderstood('it is not a list of objects')
  return element as Readonly<Record<string, unknown>>
}
