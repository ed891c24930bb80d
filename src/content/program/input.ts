import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { letBuffersGo } from '../../upload/buffer-garbage.ts'

// process.stdin reads half as much at once, and each piece costs turns of three threads. Twice as much takes 3 MiB more memory.
const pieceBytes = 131_072

/** Standard input, a pipe or a socket, in large pieces, each in a buffer of its own. */
export function openInput(): Readable {
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
