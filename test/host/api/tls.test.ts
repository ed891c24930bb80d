import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tlsOptions, type TlsMaterial } from '../../../src/system/tls-options.ts'
import { makeMaterial, openTls, startServer } from '../../support/https-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const pemOf = (name: string, text: string) =>
  new RegExp(`-----BEGIN ${name}-----[^]*?-----END ${name}-----\\n`).exec(text)![0]

function makeRsa(): TlsMaterial {
  const request = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    '-',
    '-subj',
    '/CN=box',
    '-days',
    '9',
  ]
  const text = execFileSync('openssl', request, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return { key: pemOf('PRIVATE KEY', text), cert: pemOf('CERTIFICATE', text) }
}

/** What an openssl client agreed on with the server, or undefined when it was refused. */
async function handshake(port: number, ...flags: string[]) {
  const args = ['s_client', '-connect', `127.0.0.1:${port}`, ...flags]
  const { stdout } = await execa('openssl', args, { reject: false, input: '' })
  const agreed = /^New, (TLSv[\d.]+|SSLv3), Cipher is (\S+)$/m.exec(stdout)
  const version = /^\s*Protocol\s*: (\S+)$/m.exec(stdout)?.[1] ?? agreed?.[1]
  if (!agreed || agreed[2] === '(NONE)') return undefined
  const group = /^(?:Server Temp Key|Negotiated TLS1.3 group): ([^,\n]+)/m.exec(stdout)?.[1]
  return { suite: agreed[2], version, group, text: stdout }
}

const allowed = (kind: string) =>
  ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map((tail) => `ECDHE-${kind}-${tail}`)
const everythingBut = (kind: string) =>
  ['ALL:COMPLEMENTOFALL', ...allowed(kind).map((suite) => `!${suite}`)].join(':') + ':@SECLEVEL=0'

describe.each([
  ['an EC key', 'ECDSA', makeMaterial],
  ['an RSA key', 'RSA', makeRsa],
])('TLS with %s', (_what, kind, make) => {
  let served: Awaited<ReturnType<typeof startServer>>
  let lax: ReturnType<typeof createTlsServer>
  let laxPort: number
  beforeAll(async () => {
    const material = await make()
    served = await startServer(material, (_request, response) => response.end('hello'))
    // For comparison with the refusals: a server that accepts everything this openssl supports.
    const options = { ...material, minVersion: 'TLSv1', ciphers: 'ALL:COMPLEMENTOFALL:@SECLEVEL=0' } as const
    lax = createTlsServer(options, (socket) => socket.on('error', () => undefined).end())
    lax.listen(0, '127.0.0.1')
    await once(lax, 'listening')
    laxPort = (lax.address() as AddressInfo).port
  })
  afterAll(async () => {
    await served.stop()
    lax.close()
  })

  it.each(allowed(kind))('the server speaks TLS 1.2 with %s', async (suite) => {
    const agreed = await handshake(served.port, '-tls1_2', '-cipher', suite)
    expect(agreed?.suite).toBe(suite)
  })

  it('the server refuses every other suite of TLS 1.2 that this client can speak', async () => {
    const flags = ['-tls1_2', '-cipher', everythingBut(kind)]
    expect(await handshake(laxPort, ...flags)).toBeDefined()
    expect(await handshake(served.port, ...flags)).toBeUndefined()
  })

  it.each(['-tls1', '-tls1_1'])('the server refuses %s, which this client can speak', async (version) => {
    const flags = [version, '-cipher', 'ALL:@SECLEVEL=0']
    expect(await handshake(laxPort, ...flags)).toBeDefined()
    expect(await handshake(served.port, ...flags)).toBeUndefined()
  })

  it.each(['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'])(
    'the server speaks TLS 1.3 with %s',
    async (suite) => {
      const agreed = await handshake(served.port, '-tls1_3', '-ciphersuites', suite)
      expect(agreed?.suite).toBe(suite)
    },
  )

  it('the server refuses the CCM suites of TLS 1.3', async () => {
    expect(await handshake(served.port, '-tls1_3', '-ciphersuites', 'TLS_AES_128_CCM_SHA256')).toBeUndefined()
  })

  it('the server agrees on X25519, P-256 and P-384 and on no other curve', async () => {
    for (const curve of ['X25519', 'P-256', 'P-384']) {
      expect(await handshake(served.port, '-groups', curve)).toBeDefined()
    }
    for (const curve of ['P-521', 'X448'])
      expect(await handshake(served.port, '-groups', curve)).toBeUndefined()
  })

  it('the server lets the client choose the suite', async () => {
    for (const suites of [allowed(kind), allowed(kind).toReversed()]) {
      const agreed = await handshake(served.port, '-tls1_2', '-cipher', suites.join(':'))
      expect(agreed?.suite).toBe(suites[0])
    }
  })

  it('the server refuses to renegotiate', async () => {
    const flags = ['s_client', '-connect', `127.0.0.1:${served.port}`, '-tls1_2']
    const { all } = await execa('openssl', flags, { reject: false, input: 'R\n', all: true })
    expect(all).toContain('RENEGOTIATING')
    expect(all).toContain('no renegotiation')
  })

  it('the server agrees on http/1.1 with a client that offers more', async () => {
    const agreed = await handshake(served.port, '-alpn', 'h2,http/1.1')
    expect(agreed?.text).toContain('ALPN protocol: http/1.1')
  })
})

describe('setSecureContext', () => {
  it('new connections get the new certificate while an open one continues', async () => {
    const [before, after] = [await makeMaterial(), await makeMaterial()]
    const { server, port, stop } = await startServer(before, (_request, response) => response.end('hello'))
    const old = await openTls(port, before.cert)
    const ask = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
    old.socket.write(ask)
    await waitFor(() => expect(old.received.match(/hello/g)).toHaveLength(1))

    server.setSecureContext(tlsOptions(after))

    const fresh = await openTls(port, after.cert)
    expect((fresh.socket as { authorized?: boolean }).authorized).toBe(true)
    const refused = await openTls(port, before.cert)
    expect(refused.closed).toBe(true)
    old.socket.write(ask)
    await waitFor(() => expect(old.received.match(/hello/g)).toHaveLength(2))
    expect(old.closed).toBe(false)
    // The new context keeps the policy.
    expect(await handshake(port, '-tls1_2', '-cipher', everythingBut('ECDSA'))).toBeUndefined()
    await stop()
  })
})
