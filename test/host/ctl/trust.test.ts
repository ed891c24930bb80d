import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseKey, signCertificate } from '../../../src/certificate/certificate.ts'
import { tlsOptions, type TlsMaterial } from '../../../src/system/tls-options.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { makeMaterial, startServer } from '../../support/https-server.ts'

let ctl: Ctl
let material: TlsMaterial
let server: Awaited<ReturnType<typeof startServer>>
let asked: string[]
let answer: RequestListener
beforeEach(async () => {
  ctl = createCtl()
  material = await makeMaterial()
  asked = []
  answer = (_request, response) => response.end('{"msg":"pong"}')
  server = await startServer(material, (request, response) => {
    asked.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.authorization ?? '-'}`)
    answer(request, response)
  })
})
afterEach(async () => {
  await server.stop()
  rmSync(ctl.home, { recursive: true })
})

const name = () => `localhost:${server.port}`
const fingerprintOf = ({ cert }: TlsMaterial) => new X509Certificate(cert).fingerprint256
const another = (text: string) => text.slice(0, -2) + (text.endsWith('00') ? '01' : '00')
const get = (...more: string[]) => ctl.run(['--host', name(), ...more, 'api', 'get', '/v1/ping'])
const accept = () => get('--fingerprint', fingerprintOf(material))
const folder = () => join(ctl.home, '.config/edgehostctl')

async function renewed(of: TlsMaterial): Promise<TlsMaterial> {
  const now = Date.now()
  const names = { hostName: 'renamed', addresses: [] }
  return {
    key: of.key,
    cert: await signCertificate({ key: parseKey(of.key), names, now, buildDate: now - 1 }),
  }
}

describe('a host that is not known', () => {
  it('an unknown host is refused without a terminal, with its fingerprint, and nothing is sent or kept', async () => {
    const ended = await get()
    expect(ended).toMatchObject({ exitCode: 5, stdout: '' })
    expect(ended.stderr).toContain(fingerprintOf(material))
    expect(asked).toEqual([])
    expect(existsSync(folder())).toBe(false)
  })

  it('an unknown host is accepted by exactly its fingerprint, in any spelling', async () => {
    const bare = fingerprintOf(material).replaceAll(':', '').toLowerCase()
    expect(await get('--fingerprint', `sha256:${bare}`)).toMatchObject({
      exitCode: 0,
      stdout: '{"msg":"pong"}',
    })
    expect(await get()).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it.each(['', 'AA:BB', 'x'])('an unknown host is refused with the fingerprint %j', async (wrong) => {
    expect(await get(`--fingerprint=${wrong}`)).toMatchObject({ exitCode: 5 })
    expect(await get(`--fingerprint=${another(fingerprintOf(material))}`)).toMatchObject({
      exitCode: 5,
    })
    expect(asked).toEqual([])
  })

  it('the key of a host is kept for this user alone', async () => {
    await accept()
    const [file = ''] = readdirSync(join(folder(), 'hosts'))
    expect(statSync(folder()).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder(), 'hosts')).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder(), 'hosts', file)).mode & 0o777).toBe(0o600)
  })
})

describe('a host that is known', () => {
  it('a known host may renew its certificate, for other names too', async () => {
    await accept()
    server.server.setSecureContext(tlsOptions(await renewed(material)))
    expect(await get()).toMatchObject({ exitCode: 0 })
  })

  it('a known host with another key is refused for every command, until it is forgotten', async () => {
    await accept()
    asked.length = 0
    const other = await makeMaterial()
    server.server.setSecureContext(tlsOptions(other))
    const ended = await get()
    expect(ended).toMatchObject({ exitCode: 5, stdout: '' })
    expect(ended.stderr).toContain(fingerprintOf(other))
    expect(ended.stderr).toContain(`edgehostctl forget ${name()}`)
    expect(await get('--fingerprint', fingerprintOf(other))).toMatchObject({ exitCode: 5 })
    expect(await ctl.run(['--host', name(), 'login', 'alice', '--password-stdin'], 'secret\n')).toMatchObject(
      {
        exitCode: 5,
      },
    )
    expect(asked).toEqual([])
    expect(await ctl.run(['forget', name()])).toMatchObject({ exitCode: 0 })
    expect(await get('--fingerprint', fingerprintOf(other))).toMatchObject({ exitCode: 0 })
  })

  it('a known host is not accepted when its file is damaged', async () => {
    await accept()
    const [file = ''] = readdirSync(join(folder(), 'hosts'))
    const path = join(folder(), 'hosts', file)
    writeFileSync(path, readFileSync(path).subarray(0, 20))
    const ended = await get()
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toContain(`${path} is damaged`)
  })
})

describe('a reply', () => {
  it('an error of the API is printed to standard error as received, with exit code 1', async () => {
    answer = (_request, response) => response.writeHead(404).end('{"code":"NotFound","message":"no"}')
    expect(await accept()).toMatchObject({ exitCode: 1, stdout: '' })
    expect((await get()).stderr).toBe('{"code":"NotFound","message":"no"}')
  })

  it('a reply of megabytes is printed completely', async () => {
    answer = (_request, response) => response.end(Buffer.alloc(3_000_000, 'x'))
    expect((await accept()).stdout.length).toBe(3_000_000)
  })

  it('a reply that breaks off is exit code 3', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half')
      setImmediate(() => response.destroy())
    }
    expect(await accept()).toMatchObject({ exitCode: 3, stdout: '' })
  })
})

it('a missing host is exit code 3', async () => {
  const ended = await ctl.run(['--host', 'localhost:1', 'status'])
  expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
  expect(ended.stderr).toMatch(/connection refused/)
})

it('a missing socket is exit code 3, a forbidden one 4', async () => {
  const ended = await ctl.run(['--socket', join(ctl.home, 'none'), 'status'])
  expect(ended).toMatchObject({ exitCode: 3 })
  expect(ended.stderr).toMatch(/systemctl status edgehostd\n.*journalctl -u edgehostd/s)
})
