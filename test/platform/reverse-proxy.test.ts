import { execa, execaSync } from 'execa'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeMaterial } from '../support/https-server.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { waitFor } from '../support/wait-for.ts'
import { freePort } from '../support/free-port.ts'

// Debian has it where only root has a path to it.
const program = '/usr/sbin/nginx'
const isInstalled = execaSync(program, ['-v'], { reject: false }).exitCode === 0
const needs = isInstalled ? '' : 'needs nginx-light'

const password = 'a long password'
// From here nginx connects to the platform.
const proxyAddress = '127.0.0.9'

interface Sent {
  /** Address of the client: to nginx any one, which PROXY protocol tells it; past nginx one of the loopback. */
  readonly from: string
  /** Past the proxy, straight to the platform. */
  readonly isDirect?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly payload?: object
}

describe.skipIf(needs !== '')(`nginx in front of the platform${needs && ` (${needs})`}`, () => {
  let folder: string
  let platform: Awaited<ReturnType<typeof createTestPlatform>>
  let proxyPort: number
  let stopNginx: () => Promise<unknown>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'reverse-proxy-'))
    platform = await createTestPlatform({
      rateLimits: { enabled: true },
      flags: [`--api.trustedProxies=${proxyAddress}`],
    })
    await platform.addUser('you@plant.example', password, ['admin'])
    await platform.start()
    const { key, cert } = await makeMaterial()
    writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 })
    writeFileSync(join(folder, 'cert.pem'), cert)
    proxyPort = await freePort()
    writeFileSync(join(folder, 'nginx.conf'), configuration(folder, proxyPort, platformPort()))
    const nginx = execa(program, ['-e', 'stderr', '-c', join(folder, 'nginx.conf')], { reject: false })
    stopNginx = () => {
      nginx.kill('SIGTERM')
      return nginx
    }
    await waitFor(() => knock(proxyPort), 10_000)
  })
  afterAll(async () => {
    await stopNginx()
    await platform.close()
    rmSync(folder, { recursive: true })
  })

  const platformPort = () => (platform.app.server.address() as AddressInfo).port

  async function ask(path: string, { from, isDirect = false, headers = {}, method = 'GET', payload }: Sent) {
    const socket = isDirect
      ? connect({ host: '127.0.0.1', port: platformPort(), localAddress: from })
      : connect(proxyPort, '127.0.0.1')
    if (!isDirect) socket.write(`PROXY TCP4 ${from} 127.0.0.1 4711 443\r\n`)
    const sending = request({
      ...{
        path,
        method,
        createConnection: () => connectTls({ socket, rejectUnauthorized: false }),
      },
      headers: { ...headers, ...(payload ? { 'content-type': 'application/json' } : {}) },
    })
    sending.end(payload ? JSON.stringify(payload) : undefined)
    const [reply] = (await once(sending, 'response')) as [IncomingMessage]
    return { status: reply.statusCode, headers: reply.headers, body: await text(reply) }
  }

  /** The address in the audit record of a sign-in that is refused. */
  async function recordedAddress(sent: Sent) {
    const payload = { emailId: 'you@plant.example', password: `wrong from ${sent.from}` }
    const reply = await ask('/v1/auth/authenticate', { ...sent, method: 'POST', payload })
    expect(reply.status).toBe(401)
    const list = await platform.app.inject({
      url: `/v1/audits?filters=metadata.uid=${String(reply.headers.audituid)}`,
      headers: await platform.signIn('you@plant.example', password),
    })
    return list.json<{ items: { spec: { actor: { address: string } } }[] }>().items[0]?.spec.actor.address
  }
  const forged = (count = 1) => ({ 'x-forwarded-for': `203.0.113.${count}` })

  it('the address of the client is in the audit trail, whatever it writes into the field', async () => {
    expect(await recordedAddress({ from: '192.0.2.21' })).toBe('192.0.2.21')
    expect(await recordedAddress({ from: '192.0.2.22', headers: forged() })).toBe('192.0.2.22')
  })

  it('a client that goes past the proxy is the one that it is', async () => {
    expect(await recordedAddress({ from: '127.0.0.23', isDirect: true, headers: forged() })).toBe(
      '127.0.0.23',
    )
  })

  it.each([false, true])(
    'a client has one rate, whatever it writes into the field, and others have theirs (past the proxy: %s)',
    async (isDirect) => {
      const [client, other] = isDirect ? ['127.0.0.31', '127.0.0.32'] : ['192.0.2.33', '192.0.2.34']
      // Twenty at once: on a busy machine the bucket would be filled as fast as one request after the other empties it.
      let free = 0
      let refused = 0
      for (let round = 0; round < 20 && refused === 0; round += 1) {
        const replies = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            ask('/v1/projects', { from: client, isDirect, headers: forged(index) }),
          ),
        )
        const refusals = replies.filter(({ status }) => status === 429).length
        free += replies.length - refusals
        refused += refusals
      }
      expect(free).toBeGreaterThanOrEqual(50)
      expect(refused).toBeGreaterThan(0)
      const { status, headers } = await ask('/v1/projects', { from: other, isDirect, headers: forged() })
      // A reply has the field once less than half is left.
      expect([status, headers.ratelimit]).toEqual([401, undefined])
    },
  )
})

/** nginx as a reverse proxy that ends TLS, with the field as its documentation sets it. */
const configuration = (folder: string, port: number, platformPort: number) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((each) => `${each}_temp_path ${folder}/${each};`).join('\n  ')}
  server {
    listen 127.0.0.1:${port} ssl proxy_protocol;
    set_real_ip_from 127.0.0.1;
    real_ip_header proxy_protocol;
    ssl_certificate ${folder}/cert.pem;
    ssl_certificate_key ${folder}/key.pem;
    location / {
      proxy_pass https://127.0.0.1:${platformPort};
      proxy_bind ${proxyAddress};
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`

/** Resolves when something accepts connections on a port of the loopback. */
const knock = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject).once('connect', () => {
      socket.destroy()
      resolve()
    })
  })
