// The baselines of content: TLS as the daemon has it, and behind it the least that puts a bundle on the disk.
// POST /bundle unpacks a file with the programs of the system; PUT /blobs/NAME hashes and writes a blob; POST /sync syncs; any other POST
// hashes a body and has it on the disk when it answers.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { tlsOptions } from '../src/system/tls-options.ts'

const [port = '', key = '', cert = '', folder = ''] = process.argv.slice(2)
const material = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
// tar ends when it has read the whole archive; only then is the file system synced.
const unpack =
  'set -o pipefail; tee >(openssl dgst -sha256 >"$1.sha256") | zstd -dc | tar -C "$1" -x && sync -f "$1"'

const server = createServer(tlsOptions(material), (request, reply) => {
  answer(request).then(
    (status) => reply.writeHead(status).end('{"msg":"pong"}'),
    (error: unknown) => {
      console.error(error)
      reply.destroy()
    },
  )
})
server.requestTimeout = 0
server.listen(Number(port), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))

async function answer(request: IncomingMessage): Promise<number> {
  const { method, url = '' } = request
  if (method === 'GET') return 200
  mkdirSync(folder, { recursive: true })
  if (method === 'PUT') return (await put(request, basename(url))) === basename(url) ? 201 : 400
  if (url !== '/bundle' && url !== '/sync') {
    await put(request, 'body', { flush: true })
    return 201
  }
  const script = url === '/bundle' ? unpack : 'sync -f "$1"'
  const child = spawn('bash', ['-c', script, 'bash', folder], { stdio: ['pipe', 'inherit', 'inherit'] })
  await Promise.all([once(child, 'exit'), pipeline(request, child.stdin)])
  if (child.exitCode !== 0) throw new Error(`${script}: exit code ${child.exitCode}`)
  return 201
}

/** @returns the SHA-256 of the body */
async function put(
  request: IncomingMessage,
  name: string,
  options: { flush?: boolean } = {},
): Promise<string> {
  const hash = createHash('sha256')
  request.on('data', (chunk: Buffer) => hash.update(chunk))
  await pipeline(request, createWriteStream(join(folder, name), options))
  return hash.digest('hex')
}
