import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import {
  loginPath,
  resetPath,
  type ErrorReply,
  type TestEdge,
  useEdges,
  useOneEdge,
} from '../../support/test-edge.ts'
import { hourMs } from '../../support/turning-clock.ts'

const refusalDelayMs = 150

let edge: TestEdge
const use = (made: TestEdge) => (edge = made)
let logins = 0
/** From an address of its own, so that no refusal counts for another one. */
const tryAlone = (name: string, password: string) =>
  edge.tryLogin(name, password, { remoteAddress: `192.0.2.${(logins += 1)}` })

const refusals: [string, string, string][] = [
  ['a wrong password', 'bob', 'wrong'],
  ['an unknown user', 'no such user', 'wrong'],
  ['a locked account', 'locked', 'locked pass'],
  ['an expired account', 'gone', 'gone pass'],
  ['an expired password, but a wrong one', 'fresh', 'wrong'],
  ['a shell that is not in /etc/shells', 'service', 'service pass'],
  ['an option as user name', '-oProxyCommand=id', 'x'],
  ['a path as user name', '../bob', 'bob pass'],
  ['NUL in the user name', 'bob\0', 'bob pass'],
  ['a newline in the user name', 'bob\n', 'bob pass'],
  ['a very long user name', 'b'.repeat(10_000), 'bob pass'],
  ['a password followed by a newline and more', 'bob', 'bob pass\nmore'],
  ['a password followed by CR', 'bob', 'bob pass\r'],
  ['a password followed by NUL', 'bob', 'bob pass\0'],
  ['a password of 512 bytes', 'bob', 'x'.repeat(512)],
]

describe('refused logins', () => {
  useOneEdge(use, { refusalDelayMs })

  it.each(refusals)(
    'the refusal of %s looks like any other, and does not come before the delay',
    async (_what, name, password) => {
      const began = performance.now()
      const reply = await tryAlone(name, password)
      const tookMs = performance.now() - began
      const { ref, ...body } = reply.json<ErrorReply>()
      expect(reply.statusCode).toBe(401)
      expect(body).toEqual({ code: 'InvalidCredentials', message: 'user name or password is wrong' })
      expect(ref).toBe(reply.headers['x-request-id'])
      expect(reply.headers).toEqual({
        date: expect.any(String) as string,
        'x-request-id': ref,
        audituid: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        'cache-control': 'no-store',
        connection: 'keep-alive',
        'content-length': String(reply.body.length),
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
      })
      // Timers may be early by a fraction of a millisecond.
      expect(tookMs).toBeGreaterThan(refusalDelayMs - 3)
    },
  )

  it.each(refusals.slice(6))('a login with %s starts no child process', async (_what, name, password) => {
    await tryAlone(name, password)
    expect(edge.host.calls).toEqual([])
  })

  it('a login is refused at the next full second when PAM took longer than the delay', async () => {
    edge.host.pam = 'slow'
    const began = performance.now()
    const reply = tryAlone('bob', 'wrong')
    await expect.poll(() => edge.pamCalls().length).toBe(1)
    // Measured from here: on a busy machine the request itself may reach the daemon late.
    const calledAt = performance.now()
    await expect.poll(() => performance.now() - calledAt).toBeGreaterThan(refusalDelayMs + 20)
    edge.host.release()
    expect((await reply).statusCode).toBe(401)
    expect(performance.now() - began).toBeGreaterThan(990)
  })

  it('the refusal delay begins when the body is complete, so that a slow client sees no difference', async () => {
    edge.clock.turn(2 * hourMs)
    const payload = new PassThrough()
    const reply = edge.app.inject({
      method: 'POST',
      url: loginPath,
      headers: { 'content-type': 'application/json' },
      payload,
    })
    // The head has arrived, and the body is being read.
    await expect.poll(() => payload.listenerCount('readable')).toBe(1)
    // A delay that began before would last for an hour more.
    edge.clock.turn(-hourMs)
    const sentAt = performance.now()
    payload.end('{"username":"service","password":"service pass"}')
    expect((await reply).statusCode).toBe(401)
    expect(performance.now() - sentAt).toBeGreaterThan(refusalDelayMs - 3)
  })
})

describe('the log', () => {
  // Each refusal is within the budget of its own record.
  useEdges(use, { refusalDelayMs })

  it('the log names the reason of each refused login', async () => {
    for (const [, name, password] of refusals.slice(0, 6)) await tryAlone(name, password)
    const reasons = edge.lines.filter(({ msg }) => msg === 'login refused').map(({ reason }) => reason)
    expect(reasons).toEqual([
      'Authentication failure',
      'unknown user',
      'account locked',
      'account expired',
      'Authentication failure',
      'shell is not in /etc/shells',
    ])
  })
})

describe('an expired password', () => {
  useEdges(use, { refusalDelayMs })

  it('an expired password is named as such after the right password only', async () => {
    const reply = await edge.tryLogin('fresh', 'fresh pass')
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([401, 'PasswordExpired'])
    expect(reply.headers).not.toHaveProperty('set-cookie')
    expect(edge.sessions.list()).toEqual([])
  })
})

describe('guessing passwords', () => {
  useEdges(use, { refusalDelayMs })

  it('guessing is stopped with 429 and Retry-After, without a child process', async () => {
    for (let count = 0; count < 3; count += 1) await edge.tryLogin('bob', 'wrong')
    const children = edge.host.calls.length
    const reply = await edge.tryLogin('bob', 'bob pass')
    expect([reply.statusCode, reply.json<ErrorReply>().code]).toEqual([429, 'TooManyAttempts'])
    expect(reply.headers['retry-after']).toBe('1')
    expect(edge.host.calls).toHaveLength(children)
  })

  it('five wrong passwords lock the pair, and no other address or user', async () => {
    for (const waitMs of [0, 0, 0, 1_000, 2_000]) {
      edge.clock.turn(waitMs)
      expect((await edge.tryLogin('bob', 'wrong')).statusCode).toBe(401)
    }
    expect((await edge.tryLogin('bob', 'bob pass')).headers['retry-after']).toBe('900')
    await edge.login('bob', { remoteAddress: '192.0.2.9' })
    await edge.login('alice')
    edge.clock.turn(900_000)
    await edge.login('bob')
  })

  it('impossible passwords and unknown users count like wrong passwords', async () => {
    for (const name of ['no such user', '-x', 'locked']) {
      for (let count = 0; count < 3; count += 1) await edge.tryLogin(name, 'x\n')
      expect((await edge.tryLogin(name, 'x')).statusCode).toBe(429)
    }
  })

  it('concurrent guesses get no more tries than sequential ones', async () => {
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, count) => edge.tryLogin('bob', `guess ${count}`)),
    )
    expect(replies.filter(({ statusCode }) => statusCode === 401)).toHaveLength(3)
    expect(edge.pamCalls()).toHaveLength(3)
  })

  it('a wrong old password in a password change counts too', async () => {
    const { access } = await edge.login('bob')
    const body = { oldPassword: 'wrong', newPassword: 'long enough' }
    const codes: string[] = []
    const messages: string[] = []
    for (let count = 0; count < 4; count += 1) {
      const reply = await edge.post(resetPath, body, { headers: { authorization: access } })
      const { code, message } = reply.json<ErrorReply>()
      codes.push(code)
      messages.push(message)
    }
    expect(messages[0]).toBe('oldPassword is wrong: Authentication failure')
    expect(codes).toEqual(['OldPasswordWrong', 'OldPasswordWrong', 'OldPasswordWrong', 'TooManyAttempts'])
  })

  it('a wrong password counts although the directory does not describe the account', async () => {
    // The password was checked, so the try must count although the lookup of the account fails.
    const { runner } = edge.host
    const run = runner.run.bind(runner)
    Object.assign(runner, {
      run: (...call: Parameters<typeof run>) =>
        call[0] === 'getent' || call[0] === 'id' ? Promise.reject(new Error('timed out')) : run(...call),
    })
    await writeFile(join(edge.host.etc, 'nsswitch.conf'), 'passwd: files sss\ngroup: files sss\n')
    for (let count = 0; count < 3; count += 1)
      expect((await edge.tryLogin('bob', 'wrong')).statusCode, 'a refusal, not a 500').toBe(401)
    expect((await edge.tryLogin('bob', 'wrong')).statusCode).toBe(429)
  })
})

describe('a PAM stack that is broken', () => {
  useEdges(use, { refusalDelayMs })

  it.each(['module-unknown', 'silent', 'timed-out'] as const)(
    'PAM that is %s is a 500 of its own code',
    async (how) => {
      edge.host.pam = how
      const reply = await edge.tryLogin('bob', 'bob pass')
      const { code, message } = reply.json<ErrorReply>()
      expect([reply.statusCode, code]).toEqual([500, 'PamUnavailable'])
      expect(message).toBe("the host's PAM stack gave no answer")
      // The journal says what to do.
      expect(edge.lines.find(({ level }) => level === 50)).toMatchObject({
        code: 'PamUnavailable',
        err: { message: expect.stringContaining('journalctl --since=-10min -t pamtester') as string },
      })
    },
  )

  it('a failure of PAM does not count as a wrong password', async () => {
    edge.host.pam = 'module-unknown'
    for (let count = 0; count < 10; count += 1) await edge.tryLogin('bob', 'bob pass')
    edge.host.pam = 'real'
    await edge.login('bob')
  })
})

describe('more logins than the host has room for', () => {
  useEdges(use, { cores: 1, queueLength: 1 })

  it('logins beyond the queue are refused at once with 429, and the others continue', async () => {
    edge.host.pam = 'slow'
    const names = ['root', 'alice', 'bob']
    const replies = names.map((name) => edge.tryLogin(name, edge.host.accounts.get(name)?.password ?? ''))
    const refused = await Promise.race(replies)
    expect([refused.statusCode, refused.json<ErrorReply>().code]).toEqual([429, 'TooManyLogins'])
    expect(refused.headers['retry-after']).toBe('2')
    edge.host.release()
    const statuses = (await Promise.all(replies)).map(({ statusCode }) => statusCode).sort()
    expect(statuses).toEqual([200, 200, 429])
    expect((await edge.post(loginPath, { username: 'bob', password: 'bob pass' })).statusCode).toBe(200)
  })
})
