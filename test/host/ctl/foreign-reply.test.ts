import { rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'

let ctl: Ctl
const servers: Server[] = []
beforeAll(() => {
  ctl = createCtl()
})
afterAll(() => {
  for (const server of servers) server.close()
  rmSync(ctl.home, { recursive: true })
})

let sockets = 0

/** A server that answers everything with these bytes, whatever edgehostctl asks. */
async function answer(bytes: string): Promise<string> {
  const path = join(ctl.home, `${(sockets += 1)}.sock`)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(bytes))
  })
  await new Promise<void>((resolve) => void server.listen(path, resolve))
  servers.push(server)
  return `--socket=${path}`
}

const good = (body: string) =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
// The top-level fields that the commands need; the nested ones are missing.
const hollow = {
  metadata: {},
  spec: {},
  status: {},
  count: 1,
  head: {},
  isIntact: true,
  items: [],
  listmeta: {},
}
const page = { continue: '', count: 1, limit: 1, offset: 0 }
const bodies: Readonly<Record<string, string>> = {
  HTML: '<html></html>',
  ...Object.fromEntries(['', 'null', '[]', '7', '{}'].map((body) => [`"${body}"`, body])),
  'a list of null': '{"items":null,"listmeta":null}',
  'objects without fields': JSON.stringify(hollow),
  'items that are a number': JSON.stringify({ ...hollow, items: 7, listmeta: page }),
  'an item without fields': JSON.stringify({ ...hollow, items: [{}], listmeta: page }),
  'an item that is null': JSON.stringify({ ...hollow, items: [null], listmeta: page }),
}
const commands = [
  ...['status', 'host show', 'host usage', 'audit list', 'audit verify', 'session list'],
  ...['cluster get', 'cluster events', 'cluster watch'],
  ...['content list', 'content show u', 'content usage', 'content uploads', 'content delete d --yes'],
]

describe.concurrent('a reply that is not one of edgehostd', () => {
  it.each(
    Object.entries(bodies).flatMap(([name, body]) =>
      commands.map((command) => [command, name, body] as const),
    ),
  )('%s reports a reply with %s as foreign, in one line', async (command, _name, body) => {
    const ended = await ctl.run([await answer(good(body)), ...command.split(' ')])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(
      /^edgehostctl: the reply is not one that this edgehostctl understands: [^\n]+\n$/,
    )
  })

  it.each([...commands, 'api get /v1/ping', 'audit download --file=-'])(
    '%s names the target of a redirect',
    async (command) => {
      const moved =
        'HTTP/1.1 301 Moved Permanently\r\nLocation: https://portal/\u00ff\r\nConnection: close\r\n'
      const socket = await answer(`${moved}Content-Length: 6\r\n\r\n<html>`)
      const ended = await ctl.run([socket, ...command.split(' ')])
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      const isPrinted = command.startsWith('api')
      expect(ended.stderr).toMatch(
        new RegExp(
          `^${isPrinted ? '<html>\n' : ''}edgehostctl: the host answered with status 301 and redirects to https://portal/[^\n]*, which edgehostd never does; check which program answers there\n$`,
        ),
      )
    },
  )

  it('api get names the status of an error without a body', async () => {
    const socket = await answer('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
    const ended = await ctl.run([socket, 'api', 'get', '/v1/ping'])
    expect(ended).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'edgehostctl: the host answered with status 502\n',
    })
  })

  it('an error whose fields are not texts is reported by its status', async () => {
    const body = '{"code":"Internal","message":"no","ref":7}'
    const socket = await answer(`HTTP/1.1 500 No\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    expect((await ctl.run([socket, 'status'])).stderr).toBe(
      'edgehostctl: the host answered with status 500\n',
    )
  })

  it.each([...commands, 'api get /v1/ping', 'audit download --file=-'])(
    '%s ends where the daemon switches to a different protocol',
    async (command) => {
      const socket = await answer(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      )
      const ended = await ctl.run([socket, ...command.split(' ')])
      expect(ended).toMatchObject({ exitCode: 3, stdout: '' })
      expect(ended.stderr).toMatch(/closed without a reply[^]*systemctl restart edgehostd\n$/)
    },
  )
})
