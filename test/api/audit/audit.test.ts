import { describe, expect, it, vi } from 'vitest'
import { isMutating } from '../../../src/api/audit-hook.ts'
import { auditsPath, auditUidOf, listAudits, newestAudit } from '../../support/audits.ts'
import {
  loginPath,
  logoutPath,
  renewalPath,
  resetPath,
  sessionsPath,
  type ErrorReply,
  type LoginReply,
  type TestEdge,
  useEdges,
  useOneEdge,
} from '../../support/test-edge.ts'
import { dayMs } from '../../support/turning-clock.ts'

interface VerifyReply {
  isIntact: boolean
  count: number
  head: { number: number; hash: string }
  unwritten: number
  problem?: { number: number; message: string }
}

// The start made the secret, the id, the key and the certificate.
const made = 4
const someUid = '4bf5d3a1-0000-4000-8000-000000000001'

let edge: TestEdge
let admin: string
const use = async (made: TestEdge) => {
  edge = made
  admin = (await edge.login('alice')).access
}

const list = (query?: string) => listAudits(edge, admin, query)
const verify = async (query = '') =>
  (await edge.get(`${auditsPath}/verify${query}`, admin)).json<VerifyReply>()
const newest = () => newestAudit(edge, admin)
const full = () => edge.database.sql.exec('PRAGMA query_only = ON')
const freed = () => edge.database.sql.exec('PRAGMA query_only = OFF')
/** Records of the daemon, one a second. */
function addRecords(count: number) {
  for (let number = 0; number < count; number += 1) {
    edge.clock.turn(1_000)
    edge.audit.record({
      action: number % 2 === 0 ? 'create' : 'update',
      kind: number % 3 === 0 ? 'disk' : 'link',
      message: `record ${number}`,
    })
  }
}

describe('every route that changes something', () => {
  useOneEdge(use)

  it('every route that changes something declares its audit record', () => {
    const changing = edge.routes.routes.filter(({ method }) => isMutating(method))
    expect(changing.length).toBeGreaterThan(4)
    expect(changing.filter(({ audit }) => audit === undefined)).toEqual([])
  })

  it('the routes that change nothing by themselves declare that they have no record', () => {
    const silent = edge.routes.routes.filter(({ audit }) => audit === false)
    expect(silent.map(({ url }) => url)).toEqual([
      '/v1/edge-mgmt/cluster/profiles/variables/validate',
      '/v1/edge-mgmt/content/uploads/:uid/blobs/:digest',
    ])
  })

  it('a change leaves one record with its message, and names it in the header AuditUid', async () => {
    for (const { method, url, audit } of edge.routes.routes) {
      if (!isMutating(method) || audit === false) continue
      // So that each refusal is within the budget of its own record.
      edge.clock.turn(20_000)
      const { access } = await edge.login('bob')
      // Her session would end before the last route.
      admin = (await edge.login('alice')).access
      const before = (await list()).listmeta.count
      const reply = await edge.app.inject({
        method: method as 'POST',
        url: url.replace(':uid', someUid),
        headers: { authorization: access, 'x-request-id': 'request-7' },
      })
      const { items, listmeta } = await list('?limit=1')
      const what = `${method} ${url}: ${reply.statusCode}`
      expect(listmeta.count, what).toBe(before + 1)
      const { metadata, spec } = items[0]!
      expect(auditUidOf(reply), what).toBe(metadata.uid)
      expect(spec, what).toMatchObject({
        actionType: audit?.action,
        resource: { kind: audit?.kind },
        status: reply.statusCode,
        outcome: reply.statusCode < 400 ? 'success' : 'refused',
        requestId: 'request-7',
      })
    }
  })

  it('a refused change leaves a record of its refusal', async () => {
    const reply = await edge.app.inject({ method: 'DELETE', url: `${sessionsPath}/${someUid}` })
    expect(reply.statusCode).toBe(401)
    const { metadata, spec } = await newest()
    expect(auditUidOf(reply)).toBe(metadata.uid)
    expect(spec).toEqual({
      actionType: 'delete',
      actor: { actorType: 'user', address: '127.0.0.1', uid: '' },
      message: 'End one of your own sessions; an administrator may end any session: Unauthenticated',
      outcome: 'refused',
      requestId: expect.any(String),
      resource: { kind: 'session', uid: someUid },
      status: 401,
    })
  })
})

describe('a record', () => {
  useOneEdge(use)

  it('a read leaves no record', async () => {
    const before = (await list()).listmeta.count
    const reply = await edge.get('/v1/users/current', admin)
    expect(auditUidOf(reply)).toBeUndefined()
    expect((await list()).listmeta.count).toBe(before)
  })

  it.each([
    ['/v1/secret-in-a-path', 404, 'NotFound'],
    ['/v1/secret%zz', 400, 'BadRequest'],
  ])('a change at an unknown path is recorded without the path: %s', async (path, status, what) => {
    const reply = await edge.post(path, {})
    expect(reply.statusCode).toBe(status)
    const { metadata, spec } = await newest()
    expect(auditUidOf(reply)).toBe(metadata.uid)
    expect(JSON.stringify(spec)).not.toContain('secret')
    expect(spec.message).toBe(`Change at an unknown path: ${what}`)
  })

  it.each(['/v1/nowhere', '/v1/%zz'])('a refusal at %s without a record is in the journal', async (path) => {
    vi.spyOn(edge.audit.requests, 'end').mockRejectedValueOnce(new Error('broken'))
    const reply = await edge.post(path, {})
    expect(reply.statusCode).toBeGreaterThanOrEqual(400)
    expect(reply.json<ErrorReply>().code).toMatch(/NotFound|BadRequest/)
    const ref = reply.json<ErrorReply>().ref
    expect(edge.lines).toContainEqual(
      expect.objectContaining({ level: 50, ref, msg: 'a refusal could not be recorded in the audit trail' }),
    )
  })

  it('the download is itself recorded', async () => {
    const reply = await edge.get(`${auditsPath}/download`, admin)
    const { metadata, spec } = await newest()
    expect(auditUidOf(reply)).toBe(metadata.uid)
    expect(spec).toMatchObject({
      actionType: 'activity',
      actor: { uid: 'alice' },
      resource: { kind: 'audit' },
    })
  })
})

describe('the trail', () => {
  useEdges(use)

  it('the trail contains neither passwords nor tokens in any field', async () => {
    const { access, refresh } = await edge.login('bob')
    await edge.tryLogin('bob', 'a wrong secret')
    await edge.tryLogin('secret-as-a-name', 'a wrong secret')
    await edge.post(resetPath, { username: 'secret-as-a-name', oldPassword: 'x', newPassword: 'y' })
    await edge.post(loginPath, { username: { password: 'nested secret' }, password: 'array secret' })
    await edge.post(`${loginPath}?password=query-secret`, { username: 'bob', password: 'array secret' })
    await edge.post(renewalPath, { refreshToken: refresh })
    await edge.post(renewalPath, { refreshToken: 'a-forged-token' })
    await edge.post(resetPath, { username: 'bob', oldPassword: 'bob pass', newPassword: 'brand new secret' })
    await edge.post(`${sessionsPath}/path-secret?token=${access}`, {}, { headers: { authorization: access } })
    for (const secret of [refresh, access]) {
      const url = `${sessionsPath}/${secret.slice(0, 250)}`
      for (const token of [admin, 'none'])
        await edge.app.inject({ method: 'DELETE', url, headers: { authorization: token } })
      await edge.post(url, {})
    }
    await edge.get(`/v1/nothing/${refresh}?token=${access}`)
    edge.audit.flush()
    const rows = edge.database.sql.prepare('SELECT * FROM audit').all()
    const intents = edge.database.sql.prepare('SELECT * FROM audit_intent').all()
    const archive = await edge.get(`${auditsPath}/download`, admin)
    // The journal has the name of a refused login as it was typed, like that of sshd.
    const lines = edge.lines.filter(({ msg }) => msg !== 'login refused')
    const everything = [JSON.stringify([rows, intents, lines]), archive.body].join()
    for (const secret of [
      ...['bob pass', 'alice pass', 'a wrong secret', 'nested secret', 'array secret', 'query-secret'],
      ...['brand new secret', 'path-secret', 'secret-as-a-name', 'a-forged-token', access, refresh, admin],
      ...[access.slice(0, 250), refresh.slice(0, 250)],
    ])
      expect(everything).not.toContain(secret)
    expect(everything).toContain('bob')
  })
})

describe('while the trail cannot be written', () => {
  useEdges(use)

  it('on a full disk a change is refused with 507 and not made', async () => {
    const { access } = await edge.login('bob')
    full()
    const reply = await edge.post(
      resetPath,
      { oldPassword: 'bob pass', newPassword: 'another pass' },
      { headers: { authorization: access } },
    )
    expect(reply.statusCode).toBe(507)
    expect(reply.json<ErrorReply>().code).toBe('InsufficientStorage')
    expect(auditUidOf(reply)).toMatch(/^[0-9a-f-]{36}$/)
    expect(edge.host.accounts.get('bob')?.password).toBe('bob pass')
    freed()
    expect((await edge.tryLogin('bob', 'bob pass')).statusCode).toBe(200)
  })

  it('on a full disk 401 and 400 come before 507', async () => {
    full()
    expect((await edge.post(resetPath, { oldPassword: 'x', newPassword: 5 })).statusCode).toBe(400)
    expect((await edge.app.inject({ method: 'DELETE', url: `${sessionsPath}/x` })).statusCode).toBe(401)
  })

  it('on a full disk logins, renewals, reads and ends of sessions work, logged and counted', async () => {
    full()
    const bob = await edge.login('bob')
    expect((await edge.get('/v1/users/current', bob.access)).statusCode).toBe(200)
    const renewed = await edge.post(renewalPath, { refreshToken: bob.refresh })
    expect(renewed.statusCode).toBe(200)
    const { Authorization: access } = renewed.json<LoginReply['Token']>()
    expect((await edge.tryLogin('bob', 'wrong')).statusCode).toBe(401)
    expect((await edge.post(logoutPath, undefined, { headers: { authorization: access } })).statusCode).toBe(
      200,
    )
    expect((await edge.get('/v1/users/current', access)).statusCode).toBe(401)
    expect(await verify()).toMatchObject({ isIntact: true, unwritten: 4 })
    const lost = edge.lines.filter(({ kind, seq }) => kind === 'audit' && seq === null)
    expect(lost.map(({ outcome, actor }) => [outcome, actor])).toEqual([
      ['success', 'bob'],
      ['success', 'bob'],
      ['refused', 'bob'],
      ['success', 'bob'],
    ])
    freed()
    await edge.login('bob')
    expect((await list('?limit=2')).items[1]?.spec).toMatchObject({
      resource: { kind: 'audit' },
      outcome: 'failed',
    })
    expect(await verify()).toMatchObject({ isIntact: true })
  })
})

describe('the list of audits', () => {
  useEdges(use)

  it('the list of audits shows each record once, newest first, while more are added', async () => {
    addRecords(119)
    const seen: number[] = []
    let token = ''
    do {
      const page = await list(token && `?continue=${token}`)
      seen.push(...page.items.map(({ metadata }) => metadata.number))
      token = page.listmeta.continue
      addRecords(1)
    } while (token)
    expect(seen).toEqual(Array.from({ length: 120 + made }, (_each, index) => 120 + made - index))
  })

  it('the list of audits filters by user, kind and action type, alone and together', async () => {
    addRecords(30)
    await edge.login('bob')
    const count = async (query: string) => (await list(query)).listmeta.count
    expect(await count('?userUid=bob')).toBe(1)
    expect(await count('?userUid=edgehostd')).toBe(30 + made)
    expect(await count('?resourceKind=disk')).toBe(10)
    expect(await count('?actionType=create')).toBe(15 + made)
    expect(await count('?resourceKind=disk&actionType=create')).toBe(5)
    expect(await count('?userUid=no-such-user')).toBe(0)
    expect(await count('?userUid=&resourceKind=&actionType=&startTime=&endTime=&limit=&offset=')).toBe(
      32 + made,
    )
    const { items } = await list('?resourceKind=disk&actionType=create')
    expect(items.map(({ spec }) => spec.message)).toEqual(
      [24, 18, 12, 6, 0].map((number) => `record ${number}`),
    )
  })

  it('the list of audits filters by time, both ends included', async () => {
    addRecords(10)
    const { items } = await list()
    const [to, from] = [items[2]!.metadata.createTimestamp, items[4]!.metadata.createTimestamp]
    const found = await list(`?startTime=${from}&endTime=${to}`)
    expect(found.items.map(({ metadata }) => metadata.number)).toEqual(
      [9, 8, 7].map((number) => number + made),
    )
    expect(found.listmeta).toMatchObject({ count: 3, continue: '' })
  })

  it('the list of audits finds a record by the AuditUid of a reply', async () => {
    const { reply } = await edge.login('bob')
    const { items } = await list(`?filters=metadata.uid=${String(auditUidOf(reply))}`)
    expect(items).toHaveLength(1)
    expect(items[0]?.spec.actor.uid).toBe('bob')
  })

  it('the list of audits refuses the continue token of another query', async () => {
    addRecords(60)
    const { listmeta } = await list('?userUid=edgehostd')
    expect(
      (await edge.get(`${auditsPath}?userUid=bob&continue=${listmeta.continue}`, admin)).statusCode,
    ).toBe(400)
    expect((await edge.get(`${auditsPath}?continue=${listmeta.continue}`, admin)).statusCode).toBe(400)
  })

  it('the filters of audits list their values', async () => {
    addRecords(3)
    const reply = await edge.get(`${auditsPath}/filters`, admin)
    expect(reply.json()).toEqual({
      userUid: ['alice', 'edgehostd'].map((value) => ({ label: value, value })),
      resourceKind: ['certificate', 'disk', 'edgehost', 'key', 'link', 'secret', 'session'].map((value) => ({
        label: value,
        value,
      })),
      actionType: ['activity', 'create', 'update'].map((value) => ({ label: value, value })),
    })
  })
})

describe('a malformed query of audits', () => {
  useOneEdge(use)

  it.each([
    ['startTime=yesterday', 'startTime'],
    ['startTime=2026-02-31T99:00:00Z', 'startTime'],
    ['startTime=2026-02-30T00:00:00Z', 'startTime'],
    ['endTime=2026-02-28T24:00:00Z', 'endTime'],
    ['filters=metadata.createTimestamp=2026-02-30T00:00:00Z', 'filters'],
    ['limit=0x10', 'limit'],
    ['limit=1e1', 'limit'],
    ['offset=%201', 'offset'],
    ['actionType=steal', 'actionType'],
    ['limit=51', 'limit'],
    ['filters=hash=1', 'filters'],
    ['orderBy=spec.message=1', 'orderBy'],
  ])('the list of audits refuses %s', async (query, field) => {
    const reply = await edge.get(`${auditsPath}?${query}`, admin)
    expect(reply.statusCode).toBe(400)
    expect(reply.json<ErrorReply>().details?.field).toBe(field)
  })

  it.each([
    [
      'startTime=yesterday',
      'startTime must be a time with a time zone as RFC 3339 writes it, for example 2026-01-31T08:00:00Z',
    ],
    [
      'endTime=2026-02-30T00:00:00Z',
      'endTime must be a time with a time zone as RFC 3339 writes it, for example 2026-01-31T08:00:00Z',
    ],
    ['actionType=steal', 'actionType must be one of: create, update, delete, action, activity'],
  ])('the refusal of a malformed %s names the right form', async (query, message) => {
    expect((await edge.get(`${auditsPath}?${query}`, admin)).json<ErrorReply>().message).toBe(message)
  })

  it('the refusal of a malformed head names the right form', async () => {
    const { message } = (await edge.get(`${auditsPath}/verify?head=17`, admin)).json<ErrorReply>()
    expect(message).toBe(
      'head must be <number>:<hash> from an hourly line of the journal, the hash in 64 hexadecimal digits',
    )
  })
})

describe('the verification', () => {
  useEdges(use)

  it('the verification returns the number of records and the head', async () => {
    addRecords(9)
    const found = await verify()
    expect(found).toMatchObject({
      ...{ isIntact: true, count: 10 + made, first: 1, head: { number: 10 + made }, unwritten: 0 },
    })
    expect(await verify(`?head=${10 + made}:${found.head.hash}`)).toMatchObject({ isIntact: true })
    expect(await verify(`?head=${9 + made}:${found.head.hash}`)).toMatchObject({
      isIntact: false,
      problem: { number: 9 + made },
    })
  })

  it('the verification finds an altered record', async () => {
    addRecords(9)
    edge.database.sql.exec("DROP TRIGGER audit_is_not_altered; UPDATE audit SET actor = 'x' WHERE seq = 5")
    expect(await verify()).toMatchObject({
      isIntact: false,
      problem: { number: 5, message: 'the record was altered' },
    })
  })

  it('the verification accepts the trail after retention', async () => {
    addRecords(9)
    edge.clock.turn(2_000 * dayMs)
    admin = (await edge.login('alice')).access
    await edge.audit.enforceRetention()
    expect(await verify()).toMatchObject({ isIntact: true, first: 11 + made })
    expect((await list()).listmeta.count).toBe(2)
  })

  it('a verification waits for the one before it', async () => {
    addRecords(300)
    const all = await Promise.all([verify(), verify(), verify()])
    expect(all.map(({ isIntact }) => isIntact)).toEqual([true, true, true])
  })
})
