// A proxy in a network namespace that is not that of the test. It answers CONNECT, whatever the name, with a connection to one address.
// What passes is counted in turns: each change of the direction is one, so a request is one and its reply is the next. On its
// standard input it is told `hold N`: to keep what the Nth turn from now brings, and all after it, until it is told `go`. It prints
// `listening`, `armed`, `held`, and after `count` the number of turns since the last `hold`.
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

const [port, address] = [Number(process.argv[2]), process.argv[3]!]
let turns = 0
let holdAt = Infinity
let isHeld = false
let waiting: (() => void)[] = []

const proxy = createServer((_, reply) => void reply.writeHead(405).end())
proxy.on('connect', (_: IncomingMessage, near: Socket) => {
  const far = connect(443, address)
  let last: Socket | undefined
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    from.on('error', () => undefined).on('close', () => to.destroy())
    from.on('data', (bytes: Buffer) => {
      if (last !== from) turns += 1
      last = from
      if (turns >= holdAt && !isHeld) {
        isHeld = true
        console.log('held')
      }
      if (isHeld) waiting.push(() => to.write(bytes))
      else to.write(bytes)
    })
  }
  far.once('connect', () => near.write('HTTP/1.1 200 Connection established\r\n\r\n'))
})
proxy.listen(port, '127.0.0.1', () => console.log('listening'))

createInterface({ input: process.stdin }).on('line', (line) => {
  const [word, value] = line.split(' ')
  if (word === 'count') console.log(String(turns))
  else {
    const late = waiting
    waiting = []
    isHeld = false
    holdAt = word === 'hold' ? Number(value) : Infinity
    if (word === 'hold') turns = 0
    for (const write of late) write()
    if (word === 'hold') console.log('armed')
  }
})
