import type { Readable } from 'node:stream'
import type { Order } from './protocol.ts'

const newline = 0x0a

/**
 * Reads the first line as an order; the bytes after it can still be read.
 * @throws Error if the input ends before
 */
export async function receiveOrder(input: Readable): Promise<Order> {
  const line: Buffer[] = []
  for await (const chunk of input.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const end = chunk.indexOf(newline)
    line.push(end === -1 ? chunk : chunk.subarray(0, end))
    if (end === -1) continue
    if (end + 1 < chunk.length) input.unshift(chunk.subarray(end + 1))
    return JSON.parse(Buffer.concat(line).toString()) as Order
  }
  throw new Error('standard input ended before the order did')
}
