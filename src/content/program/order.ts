import type { Order } from './protocol.ts'

/** The order of the daemon, and the bytes that follow it. */
export interface Received {
  readonly order: Order
  readonly rest: AsyncIterable<Buffer>
}

const newline = 0x0a

/**
 * Reads the first line of standard input as an order.
 * @throws Error if the input ends before
 */
export async function receiveOrder(input: AsyncIterable<Buffer>): Promise<Received> {
  const chunks = input[Symbol.asyncIterator]()
  const line: Buffer[] = []
  for (;;) {
    const next = await chunks.next()
    if (next.done) throw new Error('standard input ended before the order did')
    const end = next.value.indexOf(newline)
    line.push(end === -1 ? next.value : next.value.subarray(0, end))
    if (end === -1) continue
    const order = JSON.parse(Buffer.concat(line).toString()) as Order
    return { order, rest: follow(next.value.subarray(end + 1), chunks) }
  }
}

async function* follow(first: Buffer, others: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first
  for (let next = await others.next(); !next.done; next = await others.next()) yield next.value
}
