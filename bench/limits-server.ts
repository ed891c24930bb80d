// The daemon's edge with one small reply, once behind limiter and session guard and once behind neither.
import { readFileSync, writeFileSync } from 'node:fs'
import { createHttpsServer } from '../src/api/connection/https-server.ts'
import { createServer } from '../src/api/server.ts'
import { registerAccessTokens } from '../src/auth/access-token.ts'
import { createSecret, deriveKeys } from '../src/auth/keys.ts'
import { createSessionStore } from '../src/auth/session-store.ts'
import { createSessions } from '../src/auth/sessions.ts'
import { parseCommandLine } from '../src/config/command-line.ts'
import { loadConfig } from '../src/config/load.ts'
import { openDatabase } from '../src/store/database.ts'
import { clientFromAnywhere } from '../src/base/client.ts'
import { systemClock as clock } from '../src/system/clock.ts'
import { createLog } from '../src/system/log.ts'
import { bob } from '../test/support/test-account.ts'

const [port = '', key = '', cert = '', tokenFile = ''] = process.argv.slice(2)
const { config } = await loadConfig({
  // A limit that nobody meets.
  commandLine: parseCommandLine(['--api.rateLimits.requestsPerSecond=100000']),
  environment: {},
  defaultFile: '/nonexistent',
})
const log = createLog('info')
const material = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
const https = createHttpsServer({ ...config.api, material, clientOf: clientFromAnywhere, log })
const { app } = createServer({
  log,
  bodyLimitBytes: config.api.body.limitBytes,
  serverFactory: https.serverFactory,
  mode: 'airgap',
  rateLimits: {
    settings: config.api.rateLimits,
    monotonic: () => clock.monotonic(),
    holderOf: (token) => sessions.holderOf(token),
  },
  authenticate: (token) => sessions.authenticate(token),
  onAuthenticated: (request, caller) => https.markAuthenticated(request.socket, caller),
})
const keys = deriveKeys(createSecret())
const sessions = createSessions({
  store: createSessionStore(openDatabase(':memory:', log)),
  accessTokens: await registerAccessTokens(app, keys.access),
  refreshKey: keys.refresh,
  clock,
  log,
  ...config.auth.tokens,
})
writeFileSync(tokenFile, sessions.create(bob, '127.0.0.1', false).access)

const body = JSON.stringify({ msg: 'pong' })
app.get('/v1/guarded', { config: { access: 'viewer' } }, (_request, reply) => {
  void reply.header('content-type', 'application/json; charset=utf-8').send(body)
})
app.get('/v1/ping', { config: { access: 'open', limited: false } }, (_request, reply) => {
  void reply.header('content-type', 'application/json; charset=utf-8').send(body)
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
process.on('SIGTERM', () => process.exit(0))
