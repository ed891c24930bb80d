import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { letBuffersGo } from '../../upload/buffer-garbage.ts'
import { answerDaemon, yieldToOthers } from '../../program/worker.ts'
import { examine } from './examine.ts'
import { name, receiveOrder, publish, verify } from './publish.ts'
import type { Finding, Order } from './protocol.ts'
import { unpack } from './unpack.ts'

// process.stdin reads half as much at once, and each piece costs turns of three threads. Twice as much takes 3 MiB more memory.
const pieceBytes = 131_072

/** Standard input, a pipe or a socket, in large pieces, each in a buffer of its own. */
function openInput(): Readable {
  const input = new Readable({
    highWaterMark: pieceBytes,
    read: () => void socket.resume(),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const socket = new Socket({
    fd: 0,
    readable: true,
    writable: false,
    onread: {
      buffer: () => Buffer.allocUnsafeSlow(pieceBytes),
      callback(bytes, buffer) {
        letBuffersGo(buffer.length)
        // False pauses the socket.
        return input.push(buffer.subarray(0, bytes))
      },
    },
  })
  socket.on('end', () => input.push(null)).on('error', (error) => input.destroy(error))
  return input
}

/**
 * The program with which the daemon unpacks, examines, publishes and verifies bundles. Bundles may come from any author
 * and have 100,000 files, which would block the event loop of the daemon. If this process needs too much memory, it is
 * killed instead of the daemon.
 */
async function main(): Promise<void> {
  const input = openInput()
  const order = await receiveOrder(input)
  yieldToOthers(order.verb === 'verify' ? 19 : 10)
  await answerDaemon(carryOut(order, input))
  // A refusal does not wait for the rest of the upload.
  input.destroy()
}

async function carryOut(order: Order, input: Readable): Promise<Finding> {
  switch (order.verb) {
    case 'unpack':
      return { unpacked: await unpack(order, input) }
    case 'name':
      return { named: name(order) }
    case 'examine':
      return { examined: examine(order) }
    case 'publish':
      return { published: await publish(order) }
    case 'verify':
      return { verified: await verify(order) }
  }
}

void main()
