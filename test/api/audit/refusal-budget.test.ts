import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { auditUidOf, listAudits, newestAudit } from '../../support/audits.ts'
import {
  createTestEdge,
  renewalPath,
  resetPath,
  sessionsPath,
  type TestEdge,
} from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

let edge: TestEdge
let admin: string
beforeEach(async () => {
  // The guard must not refuse here.
  edge = await createTestEdge({ guard: { delayAfterFailures: 1_000, addressLockAfterFailures: 1_000 } })
  admin = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

const count = async () => (await listAudits(edge, admin)).listmeta.count
const newest = () => newestAudit(edge, admin)
const intents = () =>
  createTrailStore(edge.database)
    .intents()
    .map(({ uid }) => uid)
const lines = (message: string) => edge.lines.filter(({ msg }) => msg === message)

/** Uses up the single records of this minute. */
const useUp = async () => {
  for (let index = 0; index < 11; index += 1) await edge.post('/v1/nowhere', {})
}

describe('the records that callers without a session cause', () => {
  it('refusals are ten records and a sum, whatever is refused: a path, a login, a renewal, a reset, a missing token', async () => {
    const before = await count()
    const tries = [
      () => edge.post('/v1/nowhere', {}),
      () => edge.tryLogin('bob', 'wrong'),
      () => edge.tryLogin('no-such-user', 'wrong'),
      () => edge.tryLogin('bob\n', 'wrong'),
      () => edge.post(renewalPath, { refreshToken: 'none' }),
      () => edge.post(resetPath, { username: 'bob', oldPassword: 'x', newPassword: 'new password' }),
      () =>
        edge.app.inject({ method: 'DELETE', url: `${sessionsPath}/4bf5d3a1-0000-4000-8000-000000000001` }),
    ]
    const uids = []
    for (let index = 0; index < 28; index += 1) uids.push(auditUidOf(await tries[index % tries.length]!()))
    expect((await count()) - before).toBe(10)
    expect(new Set(uids).size).toBe(11)
    const sum = uids.at(-1)
    await waitFor(() => expect(intents()).toEqual([sum]))
    edge.audit.flush()
    const { metadata, spec } = await newest()
    expect(metadata.uid).toBe(sum)
    expect(spec.message).toMatch(
      /^18 more requests without a session .*: \d+ with 40\d, .*all from 127\.0\.0\.1$/,
    )
  })

  it('after a right password a refusal has a record of its own: an ended login, an expired password, a reset', async () => {
    await useUp()
    const before = await count()
    const login = await edge.login('bob')
    expect((await newest()).metadata.uid).toBe(auditUidOf(login.reply))
    const expired = await edge.tryLogin('fresh', 'fresh pass')
    expect(expired.statusCode).toBe(401)
    expect(await newest()).toMatchObject({
      metadata: { uid: auditUidOf(expired) },
      spec: { actor: { uid: 'fresh' }, status: 401 },
    })
    const refused = await edge.post(resetPath, {
      username: 'fresh',
      oldPassword: 'fresh pass',
      newPassword: 'x',
    })
    expect(refused.statusCode).toBe(400)
    expect((await newest()).metadata.uid).toBe(auditUidOf(refused))
    const reset = await edge.post(resetPath, {
      ...{ username: 'fresh', oldPassword: 'fresh pass', newPassword: 'a new pass' },
    })
    expect((await newest()).metadata.uid).toBe(auditUidOf(reset))
    expect((await count()) - before).toBe(4)
    expect(edge.lines.filter(({ msg, user }) => msg === 'login refused' && user === 'fresh')).toHaveLength(1)
  })

  it('refusals without a session leave room for those of a user with a session', async () => {
    await useUp()
    const headers = { authorization: (await edge.login('bob')).access }
    const url = `${sessionsPath}/4bf5d3a1-0000-4000-8000-000000000001`
    const reply = await edge.app.inject({ method: 'DELETE', url, headers })
    expect(reply.statusCode).toBe(404)
    expect(await newest()).toMatchObject({
      metadata: { uid: auditUidOf(reply) },
      spec: { actor: { uid: 'bob' } },
    })
  })
})

describe('the journal of a storm of refused logins', () => {
  it('of a storm of refused logins the journal has the first ones, and one line for the rest', async () => {
    for (let index = 0; index < 40; index += 1) {
      edge.clock.turn(1_000)
      await edge.tryLogin('bob', 'wrong')
    }
    expect(lines('login refused')).toHaveLength(10)
    expect(lines('request').filter(({ level, status }) => level === 30 && status !== 200)).toHaveLength(10)
    edge.lines.length = 0
    edge.audit.flush()
    expect(edge.lines).toEqual([
      expect.objectContaining({
        kind: 'audit',
        msg: expect.stringMatching(/^30 more requests without a session/),
      }),
    ])
  })

  it('of logins that PAM does not answer the journal has the first ones only', async () => {
    edge.host.pam = 'timed-out'
    for (let index = 0; index < 20; index += 1) await edge.tryLogin('bob', 'wrong')
    expect(lines('login could not be decided')).toHaveLength(10)
    expect(lines('request failed')).toHaveLength(10)
  })
})

describe('a password that was typed as a user name', () => {
  const typed = 'correct-horse-battery'

  it.each([
    ['a login', () => edge.tryLogin(typed, 'x')],
    [
      'a reset',
      () => edge.post(resetPath, { username: typed, oldPassword: 'x', newPassword: 'new password' }),
    ],
    ['a login where PAM is silent', () => ((edge.host.pam = 'timed-out'), edge.tryLogin(typed, 'x'))],
  ])(
    'a password typed as a user name is nowhere in the journal or the trail after %s',
    async (_what, send) => {
      edge.lines.length = 0
      expect((await send()).statusCode).toBeGreaterThanOrEqual(400)
      expect(edge.lines.length).toBeGreaterThan(1)
      expect(JSON.stringify(edge.lines)).not.toContain(typed)
      expect(JSON.stringify(await listAudits(edge, admin))).not.toContain(typed)
      const metrics = await edge.app.inject('/metrics')
      expect(metrics.body).not.toContain(typed)
    },
  )

  it('a login that the guard refuses is logged with the name of an account, but not with a password typed as a name', async () => {
    await edge.stop()
    edge = await createTestEdge({ guard: { lockAfterFailures: 1, delayAfterFailures: 1 } })
    for (const name of [typed, 'bob', 'root:x']) {
      await edge.tryLogin(name, 'x')
      edge.lines.length = 0
      expect((await edge.tryLogin(name, 'x')).statusCode).toBe(429)
      const [line] = lines('login refused')
      expect(line?.user).toBe(name === 'bob' ? 'bob' : undefined)
      expect(JSON.stringify(edge.lines)).not.toContain(typed)
    }
  })

  it('a refused login is logged with the name of an account; a password typed as a name is an unknown user', async () => {
    await edge.tryLogin('bob', 'wrong')
    await edge.tryLogin(typed, 'wrong')
    expect(lines('login refused').map(({ user, reason }) => [user, reason])).toEqual([
      ['bob', 'Authentication failure'],
      [undefined, 'unknown user'],
    ])
  })
})
