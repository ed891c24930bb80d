// The baseline: Fastify over HTTPS with one constant reply, as small as it can be written.
// Plain JavaScript, so that it does not pay for the removal of types when it starts.
import { readFileSync } from 'node:fs'
import { fastify } from 'fastify'

const [port, key, cert, body] = process.argv.slice(2)
const app = fastify({ https: { key: readFileSync(key), cert: readFileSync(cert) } })

app.get('/v1/ping', (request, reply) => {
  reply.send({ msg: 'pong' })
})

if (body !== undefined) {
  const bytes = readFileSync(body)
  app.get('/v1/edge-mgmt/edgehosts/current', (request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(bytes)
  })
}

await app.listen({ host: '127.0.0.1', port: Number(port) })
process.on('SIGTERM', () => process.exit(0))
