// `content.cjs` (`src/content/program`) works on bundles, for the same reasons as `examine.cjs`. `content-program.ts` starts it, with one order on
// the first line of standard input; the answer is a finding, JSON.
//
// - `unpack`: the bytes of the archive follow the order, in pieces of 512 KiB (`content-program.ts`), so the archive itself is never on the disk. A
//   thread decompresses the next piece and another one writes the last, while the main thread hashes. A blob is written to `parts` and renamed to
//   `blobs` when its content has the digest in its name, so a kill leaves whole blobs only.
// - `name` lists what one document of an upload blob by blob names, if that has more than 256 KiB; the daemon parses only smaller ones.
// - `examine` reads index.json and the manifests, and writes the record.
// - `publish` gives the store further names of the blobs of an upload (hard links). The upload keeps its own, so an interrupted publication loses
//   nothing; it may be run again.
// - `verify` reads blobs at a given rate, at nice 19. `ionice` is not used: the sandbox of the unit forbids it.

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
