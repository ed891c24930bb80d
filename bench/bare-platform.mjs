// The baseline of the platform: Fastify over HTTPS that keeps heartbeats in memory and writes them in one commit a second, and facts at once.
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setInterval } from 'node:timers'
import { fastify } from 'fastify'

const [port, key, cert, file, keepAliveMs] = process.argv.slice(2)
const sql = new DatabaseSync(file)
sql.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE host (uid TEXT PRIMARY KEY, seen_at INTEGER, state TEXT, message TEXT, version TEXT, facts TEXT)`)
const beat = sql.prepare(
  `INSERT INTO host (uid, seen_at, state, message, version) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (uid) DO UPDATE SET seen_at = excluded.seen_at, state = excluded.state, message = excluded.message, version = excluded.version`,
)
const report = sql.prepare(
  'INSERT INTO host (uid, facts) VALUES (?, ?) ON CONFLICT (uid) DO UPDATE SET facts = excluded.facts',
)
const unwritten = new Map()

setInterval(() => {
  if (unwritten.size === 0) return
  sql.exec('BEGIN')
  for (const [uid, { at, state, message = '', agentVersion = '' }] of unwritten)
    beat.run(uid, at, state, message, agentVersion)
  sql.exec('COMMIT')
  unwritten.clear()
}, 1_000)

const app = fastify({
  https: { key: readFileSync(key), cert: readFileSync(cert) },
  keepAliveTimeout: Number(keepAliveMs),
})
app.get('/v1/health/ping', (request, reply) => {
  reply.send({ msg: 'pong' })
})
app.patch('/v1/edgehosts/:uid/health', (request, reply) => {
  unwritten.set(request.params.uid, { at: Date.now(), ...request.body })
  reply.code(204).send()
})
app.put('/v1/edgehosts/:uid', (request, reply) => {
  report.run(request.params.uid, JSON.stringify(request.body))
  reply.code(204).send()
})

await app.listen({ host: '127.0.0.1', port: Number(port) })
process.on('SIGTERM', () => process.exit(0))
