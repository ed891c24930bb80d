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
const commands = ['status', 'host show', 'audit list', 'audit verify', 'sessions list']

describe.concurrent('a reply that is not one of edgehostd', () => {
  it.each(
    ['<html></html>', '', 'null', '[]', '7', '{}', '{"items":null,"listmeta":null}'].flatMap((body) =>
      commands.map((command) => [command, body] as const),
    ),
  )('%s after %j says so in one line', async (command, body) => {
    const ended = await ctl.run([await answer(good(body)), ...command.split(' ')])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(
      /^edgehostctl: the reply is not one that this edgehostctl understands: [^\n]+\n$/,
    )
  })

  it.each([...commands, 'api get /v1/ping', 'audit download --file=-'])(
    '%s ends where a different protocol is to follow',
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
