import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { makeMaterial, startServer } from '../../support/https-server.ts'

/** A daemon's logins and renewals; a refresh token is valid only once. */
function createAccounts() {
  let generation = 0
  let isEnded = false
  let logouts: [number, unknown] = [200, {}]
  const renewals: string[] = []
  const pair = () => ({ Authorization: `access-${generation}`, RefreshToken: `refresh-${generation}` })
  return {
    renewals,
    /** The access token is no longer valid. */
    age: () => void (generation += 0.5),
    end: () => void (isEnded = true),
    refuseLogouts: (reply: [number, unknown]) => void (logouts = reply),
    reply(url: string, token: string | undefined, body: Record<string, string>): [number, unknown] {
      const refused: [number, unknown] = [401, { code: 'Unauthenticated', message: 'log in again' }]
      if (url.startsWith('/v1/users/default/login')) {
        if (body.password === 'old one') return [401, { code: 'PasswordExpired', message: 'it has expired' }]
        if (body.password !== 'right pass')
          return [401, { code: 'InvalidCredentials', message: 'no\u001b[31m' }]
        return [200, { Token: pair(), IsFirstLogin: true }]
      }
      if (url === '/v1/users/default/token/renewal') {
        renewals.push(body.refreshToken ?? '')
        if (isEnded || body.refreshToken !== `refresh-${Math.floor(generation)}`) return refused
        generation = Math.floor(generation) + 1
        return [200, pair()]
      }
      if (url === '/v1/users/default/logout') return logouts
      if (url === '/v1/ping') return [200, { msg: 'pong' }]
      if (token !== `access-${generation}`) return refused
      if (url === '/v1/users/current') return [200, { userName: 'alice', role: 'admin' }]
      if (url.startsWith('/v1/users/sessions')) return [200, page(url)]
      return [200, {}]
    },
  }
}

const time = '2026-01-31T08:00:00.000Z'
const sessionOf = (number: number) => ({
  ...{ uid: `s${number}`, userName: 'alice', role: 'admin', address: '192.0.2.7', isCurrent: false },
  ...{ creationTimestamp: time, lastRenewalTimestamp: time, expirationTimestamp: time },
})

/** Sessions 0 to 119 in pages. */
function page(url: string) {
  const query = new URL(url, 'https://box').searchParams
  const [from, limit] = [Number(query.get('continue') ?? 0), Number(query.get('limit'))]
  const items = Array.from({ length: Math.min(limit, 120 - from) }, (_, index) => sessionOf(from + index))
  const next = from + items.length
  return {
    items,
    listmeta: { continue: next < 120 ? String(next) : '', count: 120, limit: items.length, offset: next },
  }
}

let ctl: Ctl
let accounts: ReturnType<typeof createAccounts>
let server: Awaited<ReturnType<typeof startServer>>
let fingerprint: string
/** Those of the requests, in their order. */
let idempotencyKeys: unknown[]
beforeEach(async () => {
  ctl = createCtl()
  idempotencyKeys = []
  accounts = createAccounts()
  const material = await makeMaterial()
  fingerprint = new X509Certificate(material.cert).fingerprint256
  server = await startServer(material, (request, response) => {
    if (request.url === '/v1/edge-mgmt/cluster') idempotencyKeys.push(request.headers['idempotency-key'])
    void readJson(request).then((body) => {
      const [status, reply] = accounts.reply(request.url ?? '', request.headers.authorization, body)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
    })
  })
})
afterEach(async () => {
  await server.stop()
  rmSync(ctl.home, { recursive: true })
})

async function readJson(request: IncomingMessage): Promise<Record<string, string>> {
  let text = ''
  for await (const part of request) text += String(part)
  return text === '' ? {} : (JSON.parse(text) as Record<string, string>)
}

const run = (...args: string[]) => ctl.run(['--host', `localhost:${server.port}`, ...args])
const logIn = (password = 'right pass\n') =>
  ctl.run(
    [
      '--host',
      `localhost:${server.port}`,
      '--fingerprint',
      fingerprint,
      'login',
      'alice',
      '--password-stdin',
    ],
    password,
  )
const folder = () => join(ctl.home, '.config/edgehostctl/sessions')
const kept = () =>
  readdirSync(folder())
    .filter((file) => file.endsWith('.json'))
    .map((file) => readFileSync(join(folder(), file), 'utf8'))
    .join('')

describe('a login', () => {
  it('a login keeps the tokens in a file for this user alone and names the user', async () => {
    const ended = await logIn()
    expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
    expect(ended.stderr).toMatch(/Logged in on .* as alice \(admin\); the first login/)
    expect(kept()).toContain('access-0')
    for (const file of readdirSync(folder())) expect(statSync(join(folder(), file)).mode & 0o777).toBe(0o600)
    expect(kept()).not.toContain('right pass')
  })

  it('a refused login is exit code 4 and keeps nothing', async () => {
    const ended = await logIn('wrong\n')
    expect(ended).toMatchObject({ exitCode: 4, stdout: '' })
    expect(ended.stderr).toContain('no\\u001b[31m (InvalidCredentials)')
    expect(await run('session', 'list')).toMatchObject({ exitCode: 4 })
  })

  it('a login with an expired password names the command to type when there is no terminal', async () => {
    expect((await logIn('old one')).stderr).toMatch(/expired; log in on a terminal/)
  })

  it('a login without a terminal and without --password-stdin is a wrong command line', async () => {
    await logIn()
    expect(await run('login', 'alice')).toMatchObject({ exitCode: 2 })
  })

  it('a login uses the account of --user, and two different ones are a wrong command line', async () => {
    await logIn()
    const logInAs = (...words: string[]) =>
      ctl.run(['--host', `localhost:${server.port}`, 'login', '--password-stdin', ...words], 'right pass')
    expect(await logInAs('--user=alice')).toMatchObject({ exitCode: 0 })
    const ended = await logInAs('--user=bob', 'alice')
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toContain('login alice contradicts --user bob; name one account')
  })
})

describe('a session', () => {
  it('a session is renewed automatically', async () => {
    await logIn()
    accounts.age()
    expect(await run('session', 'list', '--limit=1')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(kept()).toContain('refresh-1')
  })

  it('a creation that is sent again with renewed tokens has the same Idempotency-Key', async () => {
    await logIn()
    accounts.age()
    const create = ['--host', `localhost:${server.port}`, 'cluster', 'create', '-']
    await ctl.run(create, '{"metadata": {"name": "shop"}}')
    expect(accounts.renewals).toEqual(['refresh-0'])
    expect(idempotencyKeys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), idempotencyKeys[0]])
  })

  it('a session is renewed once by concurrent invocations, and none of them loses it', async () => {
    await logIn()
    accounts.age()
    const list = ['--host', `localhost:${server.port}`, 'session', 'list', '--limit=1']
    const ended = await Promise.all(Array.from({ length: 4 }, () => ctl.runProcess(list)))
    expect(ended.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(ended.map(() => [0, '']))
    expect(accounts.renewals).toEqual(['refresh-0'])
    expect(await run('session', 'list', '--limit=1')).toMatchObject({ exitCode: 0 })
  })

  it('a session that has ended is exit code 4 with the command to type, and its tokens are removed', async () => {
    await logIn()
    accounts.age()
    accounts.end()
    const ended = await run('status')
    expect(ended).toMatchObject({ exitCode: 4, stdout: '' })
    expect(ended.stderr).toMatch(/not logged in.*--host localhost:\d+ login/)
    expect(kept()).toBe('')
  })

  it('a session of another account than --user is not used', async () => {
    await logIn()
    expect(await run('--user=bob', 'session', 'list')).toMatchObject({ exitCode: 4 })
    expect(await run('--user=alice', 'session', 'list')).toMatchObject({ exitCode: 0 })
  })

  it('a session is removed by a logout', async () => {
    await logIn()
    expect(await run('logout')).toMatchObject({ exitCode: 0 })
    expect(kept()).toBe('')
    expect(await run('logout')).toMatchObject({ exitCode: 4 })
  })

  it('a logout that the host cannot write down removes the tokens, and says that the session lasts', async () => {
    await logIn()
    accounts.refuseLogouts([507, { code: 'StorageFull', message: 'the disk is full' }])
    const { exitCode, stderr } = await run('logout')
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringMatching(
        /could not be ended, and lasts until it expires; its tokens are removed here: .*the disk is full/,
      ),
    ])
    expect(stderr).not.toContain('Logged out')
    expect(kept()).toBe('')
  })
})

describe('a list', () => {
  it('a list contains the items of all its pages', async () => {
    await logIn()
    const { stdout } = await run('session', 'list', '-o', 'json')
    const { items, listmeta } = JSON.parse(stdout) as { items: { uid: string }[]; listmeta: object }
    expect(items.map(({ uid }) => uid)).toEqual(Array.from({ length: 120 }, (_, index) => `s${index}`))
    expect(listmeta).toEqual({ continue: '', count: 120, limit: 120, offset: 120 })
  })

  it('a list ends at --limit', async () => {
    await logIn()
    const { stdout } = await run('session', 'list', '--limit=70', '-o', 'json')
    expect((JSON.parse(stdout) as { items: unknown[] }).items).toHaveLength(70)
    expect(await run('session', 'list', '--limit=few')).toMatchObject({ exitCode: 2 })
  })
})
