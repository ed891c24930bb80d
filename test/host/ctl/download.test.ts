import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { execa, execaSync } from 'execa'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { waitFor } from '../../support/wait-for.ts'

const half = Buffer.alloc(100_000, 'a')

let ctl: Ctl
let server: Server
let answer: RequestListener
beforeEach(async () => {
  ctl = createCtl()
  server = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => void server.listen(socket(), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(ctl.home, { recursive: true })
})

const socket = () => join(ctl.home, 'daemon.sock')
const archive = () => join(ctl.home, 'trail.tar')
const left = () => readdirSync(ctl.home).filter((name) => name.startsWith('trail.tar') || isPart(name))
const isPart = (name: string) => name.endsWith('.part')

// Without setsid: a signal has to reach the program itself.
const download = () =>
  execa(process.execPath, [ctl.program, `--socket=${socket()}`, 'audit', 'download', `--file=${archive()}`], {
    reject: false,
    extendEnv: false,
    env: { HOME: ctl.home },
    stdin: 'ignore',
    timeout: 20_000,
  })

it('a downloaded trail is in its file when it is complete, for this user alone', async () => {
  answer = (_request, response) => response.writeHead(200).end(half)
  expect(await download()).toMatchObject({ exitCode: 0 })
  expect(readFileSync(archive())).toEqual(half)
  expect(statSync(archive()).mode & 0o777).toBe(0o600)
  expect(left()).toEqual(['trail.tar'])
})

it('a trail that breaks off leaves no file', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-length': 2 * half.length }).write(half, () => response.destroy())
  }
  const ended = await download()
  expect(ended).toMatchObject({ exitCode: 1 })
  expect(ended.stderr).toContain('the archive is incomplete')
  expect(left()).toEqual([])
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a download that is ended by %s leaves nothing', async (signal, exitCode) => {
  answer = (_request, response) => void response.writeHead(200).write(half)
  const running = download()
  await waitFor(() => expect(readdirSync(ctl.home).some(isPart)).toBe(true), 10_000)
  running.kill(signal)
  expect(await running).toMatchObject({ exitCode })
  expect(left()).toEqual([])
})

it('a link beside the archive is not followed', async () => {
  answer = (_request, response) => response.writeHead(200).end(half)
  const victim = join(ctl.home, 'victim')
  writeFileSync(victim, 'old')
  symlinkSync(victim, `${archive()}.part`)
  expect(await download()).toMatchObject({ exitCode: 0 })
  expect(readFileSync(victim, 'utf8')).toBe('old')
  expect(readFileSync(archive())).toEqual(half)
})

it.each(['pipe', 'nowhere/trail.tar'])(
  'a download that cannot write to %s ends with one sentence',
  async (name) => {
    const file = join(ctl.home, name)
    execaSync('mkfifo', [join(ctl.home, 'pipe')])
    answer = (_request, response) => response.writeHead(200).end(half)
    const ended = await ctl.run([`--socket=${socket()}`, 'audit', 'download', `--file=${file}`])
    expect(ended).toMatchObject({ exitCode: 1 })
    expect(ended.stderr).toMatch(/^edgehostctl: .* could not be written: /)
    expect(ended.stderr).not.toContain('    at ')
    expect(statSync(join(ctl.home, 'pipe')).isFIFO()).toBe(true)
  },
)

it('a trail of any size is downloaded, but a reply that is read completely only up to 16 MiB', async () => {
  const mebibyte = Buffer.alloc(1_048_576, 'a')
  let sentMebibytes = 0
  const send = (response: ServerResponse, mebibytes: number) => {
    sentMebibytes = 0
    const next = () => {
      if (response.destroyed || sentMebibytes === mebibytes) return void response.end()
      sentMebibytes += 1
      response.write(mebibyte, next)
    }
    next()
  }
  answer = (_request, response) => send(response.writeHead(200), 40)
  expect(await download()).toMatchObject({ exitCode: 0 })
  expect(statSync(archive()).size).toBe(40 * mebibyte.length)
  // The text of an error is read completely.
  answer = (_request, response) => send(response.writeHead(500), 10_000)
  const refused = await download()
  expect(refused).toMatchObject({ exitCode: 1 })
  expect(refused.stderr).toContain('the reply is larger than 16777216 bytes')
  expect(sentMebibytes).toBeLessThan(100)
})
