// A proxy in a network namespace that is not that of the test: passes connections on, and cuts one when so many bytes of replies
// have passed. Prints `cut`, and the header Range of each request that has one.
import { connect, createServer } from 'node:net'

const [from, to, cutAfter] = process.argv.slice(2).map(Number)
let passed = 0
let isCut = false

createServer((near) => {
  const far = connect(to!, '127.0.0.1')
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const)
    socket.on('error', () => undefined).on('close', () => other.destroy())
  near.on('data', (request: Buffer) => {
    const range = /^range: (.*)$/im.exec(request.toString('latin1'))?.[1]
    if (range !== undefined) console.log(range.trim())
  })
  far.on('data', ({ length }: Buffer) => {
    passed += length
    if (isCut || passed < cutAfter!) return
    isCut = true
    console.log('cut')
    near.destroy()
  })
  near.pipe(far)
  far.pipe(near)
}).listen(from, '127.0.0.1', () => console.log('listening'))
