import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { auditsPath, auditUidOf, listAudits, newestAudit } from '../../support/audits.ts'
import {
  createTestEdge,
  loginPath,
  logoutPath,
  renewalPath,
  resetPath,
  sessionsPath,
  type LoginReply,
  type TestEdge,
} from '../../support/test-edge.ts'
import { waitFor } from '../../support/wait-for.ts'

let edge: TestEdge
let admin: string
beforeEach(async () => {
  edge = await createTestEdge()
  admin = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

const list = (query?: string) => listAudits(edge, admin, query)
const newest = () => newestAudit(edge, admin)
const intents = () =>
  createTrailStore(edge.database)
    .intents()
    .map(({ uid, entry }) => ({ uid, ...entry }))

describe('the audit record of a login', () => {
  it('the record of a login has the user, the role, the address and the session', async () => {
    await edge.login('bob')
    const session = edge.sessions.list().find(({ userName }) => userName === 'bob')
    const { metadata, spec } = await newest()
    expect(metadata).toMatchObject({ edgeHostId: 'edge-test', createTimestamp: expect.stringMatching(/Z$/) })
    expect(spec).toMatchObject({
      actionType: 'activity',
      actor: { actorType: 'user', uid: 'bob', role: 'viewer', address: '127.0.0.1' },
      message: 'Log in with an operating-system account',
      outcome: 'success',
      resource: { kind: 'session', name: 'bob', uid: session?.uid },
      status: 200,
    })
  })

  const words = 'Log in with an operating-system account'
  it.each([
    ['bob', 'bob', `${words}: InvalidCredentials`],
    ['service', 'service', `${words}: InvalidCredentials`],
    ['a-password', '', `${words}, unknown user: InvalidCredentials`],
    ['b'.repeat(300), '', `${words}, unknown user: InvalidCredentials`],
    ['a password\n', '', `${words}, unknown user: InvalidCredentials`],
  ])(
    'the record of a failed login has the typed name only if there is such an account: %j',
    async (typed, uid, message) => {
      const reply = await edge.tryLogin(typed, 'wrong')
      expect(reply.statusCode).toBe(401)
      const { spec } = await newest()
      expect(spec).toMatchObject({
        actor: { actorType: 'user', uid },
        message,
        outcome: 'refused',
        status: 401,
      })
      expect(spec.resource).toEqual({ kind: 'session' })
      const filters = await edge.get(`${auditsPath}/filters`, admin)
      expect(filters.json<{ userUid: { value: string }[] }>().userUid.map(({ value }) => value)).toEqual(
        ['alice', 'edgehostd', ...(uid === '' ? [] : [uid])].sort(),
      )
    },
  )

  it('a login is recorded as soon as PAM works on it, so that a kill leaves a trace', async () => {
    edge.host.pam = 'slow'
    const calls = edge.pamCalls().length
    const asked = edge.tryLogin('bob', 'wrong')
    await waitFor(() => expect(intents()).toHaveLength(1))
    expect(edge.pamCalls()).toHaveLength(calls + 1)
    const [{ uid, actor, outcome }] = intents() as [ReturnType<typeof intents>[number]]
    expect({ actor, outcome }).toEqual({ actor: 'bob', outcome: 'unknown' })
    edge.host.release()
    expect(auditUidOf(await asked)).toBe(uid)
    expect((await newest()).metadata.uid).toBe(uid)
    expect(intents()).toEqual([])
  })

  it('a login for which PAM fails at once is one record', async () => {
    edge.host.pam = 'timed-out'
    const reply = await edge.tryLogin('bob', 'bob pass')
    expect(reply.statusCode).toBe(500)
    for (let turn = 0; turn < 5; turn += 1) await setImmediate()
    expect(intents()).toEqual([])
    expect(await newest()).toMatchObject({
      metadata: { uid: auditUidOf(reply) },
      spec: { outcome: 'failed', actor: { uid: 'bob' } },
    })
  })

  it('a login is recorded only at its end where PAM is not called or the disk is full', async () => {
    await edge.tryLogin('bob\n', 'wrong')
    edge.host.pam = 'slow'
    edge.database.sql.exec('PRAGMA query_only = ON')
    const calls = edge.pamCalls().length
    const asked = edge.tryLogin('bob', 'bob pass')
    await waitFor(() => expect(edge.pamCalls()).toHaveLength(calls + 1))
    edge.host.release()
    const reply = await asked
    expect(reply.statusCode).toBe(200)
    expect(auditUidOf(reply)).toMatch(/^[0-9a-f-]{36}$/)
    edge.database.sql.exec('PRAGMA query_only = OFF')
    expect(intents()).toEqual([])
  })

  it('the record of a login that the guard refuses has the name only if there is such an account', async () => {
    for (const name of ['bob', 'a-password']) {
      for (let count = 0; count < 5; count += 1) {
        edge.clock.turn(60_000)
        await edge.tryLogin(name, 'wrong')
      }
      expect((await edge.tryLogin(name, 'wrong')).statusCode).toBe(429)
      expect((await newest()).spec).toMatchObject({
        actor: { uid: name === 'bob' ? 'bob' : '' },
        outcome: 'refused',
        status: 429,
      })
    }
  })

  it.each([{ username: 5 }, [], 'text', null])('a login with the body %j is recorded', async (body) => {
    const reply = await edge.post(loginPath, JSON.stringify(body), {
      headers: { 'content-type': 'application/json' },
    })
    expect(reply.statusCode).toBe(400)
    expect((await newest()).spec).toMatchObject({ actor: { uid: '' }, status: 400 })
  })
})

it('renewal, password change, logout and the end of a session are recorded with their user', async () => {
  const bob = await edge.login('bob')
  const renewed = await edge.post(renewalPath, { refreshToken: bob.refresh })
  const { Authorization: access } = renewed.json<LoginReply['Token']>()
  const headers = { authorization: access }
  await edge.post(logoutPath, undefined, { headers })
  await edge.post(resetPath, { username: 'bob', oldPassword: 'bob pass', newPassword: 'a new pass' })
  const other = await edge.login('bob')
  const uid = edge.sessions.list().find(({ userName }) => userName === 'bob')!.uid
  await edge.app.inject({
    method: 'DELETE',
    url: `${sessionsPath}/${uid}`,
    headers: { authorization: admin },
  })
  expect(other.reply.statusCode).toBe(200)
  const { items } = await list('?limit=5')
  expect(items[2]?.spec.message).toMatch(/, 0 sessions ended$/)
  expect(
    items.map(({ spec }) => [spec.actionType, spec.resource.kind, spec.actor.uid, spec.outcome]),
  ).toEqual([
    ['delete', 'session', 'alice', 'success'],
    ['activity', 'session', 'bob', 'success'],
    ['update', 'user', 'bob', 'success'],
    ['activity', 'session', 'bob', 'success'],
    ['activity', 'session', 'bob', 'success'],
  ])
})

it('a session that the daemon ends is recorded as its own action', async () => {
  await edge.login('bob')
  edge.host.accounts.get('bob')!.state = 'locked'
  await edge.host.write()
  await edge.watch.check()
  expect((await newest()).spec).toMatchObject({
    actionType: 'delete',
    actor: { actorType: 'system', uid: 'edgehostd' },
    message: 'End a session: account locked',
    resource: { kind: 'session', name: 'bob' },
  })
})

describe('sessions that the daemon ends at once', () => {
  it('sessions beyond the maximum of a user are one record, before that of the login', async () => {
    const { name, mark } = { name: 'bob', mark: 'm' }
    const account = {
      name,
      mark,
      role: 'viewer',
      isRoleKnown: true,
      source: 'local',
      roleSource: 'local',
    } as const
    for (let count = 0; count < 502; count += 1)
      edge.sessions.create(
        { ...account, locked: false, expiresAt: undefined, hasLoginShell: true },
        '::1',
        false,
      )
    const oldest = edge.sessions.list().filter(({ userName }) => userName === 'bob')
    await edge.login('bob')
    const { items } = await list('?limit=2')
    expect(items[0]?.spec.message).toBe('Log in with an operating-system account')
    expect(items[1]?.spec).toMatchObject({
      actor: { uid: 'edgehostd' },
      resource: { kind: 'session', name: 'bob' },
      message: expect.stringMatching(/^End 3 sessions: too many sessions of this user \(/),
    })
    for (const { uid } of oldest.slice(0, 3)) expect(items[1]?.spec.message).toContain(uid)
    expect(edge.sessions.list().filter(({ userName }) => userName === 'bob')).toHaveLength(500)
  })

  it('expired sessions are one record', async () => {
    for (let count = 0; count < 12; count += 1) await edge.login('bob')
    edge.clock.turn(3 * 3_600_000)
    await edge.watch.check()
    admin = (await edge.login('alice')).access
    const { items } = await list('?limit=2')
    expect(items[1]?.spec).toMatchObject({
      message: 'End 13 sessions: expired',
      resource: { kind: 'session' },
    })
  })

  it('sessions that end with a password change are counted in its record', async () => {
    const { access } = await edge.login('bob')
    await edge.login('bob')
    const headers = { authorization: access }
    await edge.post(resetPath, { oldPassword: 'bob pass', newPassword: 'a new pass' }, { headers })
    expect((await newest()).spec).toMatchObject({
      message: expect.stringMatching(/, 2 sessions ended$/),
      outcome: 'success',
    })
  })
})
