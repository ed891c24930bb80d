import { rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { makeMaterial, startServer } from '../../support/https-server.ts'
import { X509Certificate } from 'node:crypto'

let ctl: Ctl
const stops: (() => void)[] = []
beforeAll(() => {
  ctl = createCtl()
})
afterAll(() => {
  for (const stop of stops) stop()
  rmSync(ctl.home, { recursive: true })
})

/** A daemon on a socket; requests without a reply stay open. */
async function listen(name: string, answer: RequestListener): Promise<string> {
  const path = join(ctl.home, name)
  const server = createServer(answer)
  await open(server, path)
  return `--socket=${path}`
}

async function open(server: Server, where: string | number): Promise<void> {
  await new Promise<void>((resolve) => void server.listen(where, resolve))
  stops.push(() => {
    server.close()
    if ('closeAllConnections' in server)
      (server as unknown as ReturnType<typeof createServer>).closeAllConnections()
  })
}

const silent: RequestListener = () => undefined

/** Runs a command and measures it, in seconds. */
async function timed(...args: string[]) {
  const startedAt = performance.now()
  const ended = await ctl.run(args)
  return { ...ended, seconds: (performance.now() - startedAt) / 1_000 }
}

describe.concurrent('a daemon that accepts connections and does not reply', () => {
  it.each([
    ...['status', 'audit verify', 'audit download --file=-', 'api get /v1/ping'],
    ...['content list', 'content delete d --yes'],
  ])('a daemon that hangs is noticed by %s after 10 seconds, and a restart is advised', async (command) => {
    const socket = await listen(`${command.replaceAll(/\W/g, '')}.sock`, silent)
    const ended = await timed(socket, ...command.split(' '))
    expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
    expect(ended.stderr).toMatch(/the daemon hangs.*10 seconds/)
    expect(ended.stderr).toMatch(/systemctl restart edgehostd\n$/)
    expect(ended.stderr).not.toContain('systemctl start')
    expect(ended.seconds).toBeGreaterThan(9)
  })

  it('a daemon that hangs in the middle of an archive is noticed', async () => {
    const socket = await listen('half.sock', ({ url = '' }, response) => {
      if (url.endsWith('/download')) response.writeHead(200).write('half')
    })
    const ended = await timed(socket, 'audit', 'download', `--file=${join(ctl.home, 'half.tar')}`)
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(/the archive is incomplete: the daemon hangs/)
  })

  it('a slow daemon is not taken for one that hangs', async () => {
    // The reply is sent only after edgehostctl has asked for /v1/ping.
    let finish: () => void = () => undefined
    const socket = await listen('slow.sock', ({ url }, response) => {
      if (url === '/v1/ping') {
        response.end('{}')
        finish()
      } else finish = () => response.end('{"slow":true}')
    })
    expect(await timed(socket, 'api', 'get', '/v1/slow')).toMatchObject({
      exitCode: 0,
      stdout: '{"slow":true}',
      stderr: '',
    })
  })

  it('a daemon that hangs on another host is noticed, before TLS and after it', async () => {
    const mute = createTcpServer(() => undefined)
    await open(mute, 0)
    const before = timed('--host', `127.0.0.1:${(mute.address() as AddressInfo).port}`, 'status')
    const material = await makeMaterial()
    const server = await startServer(material, silent)
    stops.push(() => void server.stop())
    const { fingerprint256 } = new X509Certificate(material.cert)
    const behind = timed(
      '--host',
      `https://localhost:${server.port}/`,
      '--fingerprint',
      fingerprint256,
      'status',
    )
    for (const ended of await Promise.all([before, behind])) {
      expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
      expect(ended.stderr).toMatch(/hangs.*10 seconds[^]*systemctl restart edgehostd/)
    }
  })
})
