// The baseline of `upload`: the smallest server that has the bytes of a body hashed and on the disk when it answers.
// It parses nothing.
import { createHash } from 'node:crypto'
import { createWriteStream, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { tlsOptions } from '../src/system/tls-options.ts'

const [port = '', key = '', cert = '', file = ''] = process.argv.slice(2)
const material = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
const server = createServer(tlsOptions(material), (request, reply) => {
  if (request.method !== 'POST') {
    reply.end('{"msg":"pong"}')
    return
  }
  const hash = createHash('sha256')
  request.on('data', (chunk: Buffer) => hash.update(chunk))
  pipeline(request, createWriteStream(file, { flush: true })).then(
    () => reply.writeHead(201).end(JSON.stringify({ sha256: hash.digest('hex') })),
    () => reply.destroy(),
  )
})
server.requestTimeout = 0
server.listen(Number(port), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))
