import { hash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAudit } from '../../../src/audit/audit.ts'
import { canonicalForm, hashOf, hex, plainText, type AuditHead } from '../../../src/audit/record.ts'
import { retain } from '../../../src/audit/retention.ts'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { createTrail } from '../../../src/audit/trail.ts'
import { verifyTrail } from '../../../src/audit/verification.ts'
import { createContinueTokens } from '../../../src/lists/continue-token.ts'
import { migrations } from '../../../src/edgehostd/migrations.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTestTrail, entry, type TestTrail } from '../../support/test-trail.ts'
import { dayMs } from '../../support/turning-clock.ts'

let rig: TestTrail
beforeEach(() => {
  rig = createTestTrail()
})
afterEach(() => rig.database.close())

it('records that an earlier release wrote, before they had uids of actor and project, are verified and are in one chain with new ones', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-trail-'))
  const file = join(folder, 'edgehostd.db')
  const { log } = captureLog()
  const database = openDatabase(file, log, migrations)
  const zeros = '0'.repeat(64)
  const hashed = `[1,"${zeros}",1,"u",1767225600000,"user","bob","admin","192.0.2.7","create","session","","s","Log in","success",200,"r"]`
  database.sql
    .prepare(
      `INSERT INTO audit (seq, uid, at, actor_type, actor, role, address, action, kind, resource_name, resource_uid, message, outcome,
        status, request_id, previous_hash, hash) VALUES (1, 'u', 1767225600000, 'user', 'bob', 'admin', '192.0.2.7', 'create', 'session',
        '', 's', 'Log in', 'success', 200, 'r', ?, ?)`,
    )
    .run(Buffer.alloc(32), hash('sha256', hashed, 'buffer'))
  const store = createTrailStore(database)
  const trail = createTrail({ store, database, clock: rig.clock, log })
  trail.append(entry('new'))
  expect(await verifyTrail({ store, head: trail.head() })).toMatchObject({ isIntact: true, count: 2 })
  database.sql.exec('DROP TRIGGER audit_is_not_altered')
  database.sql.exec("UPDATE audit SET actor_uid = 'x' WHERE seq = 1")
  expect(await verifyTrail({ store, head: trail.head() })).toMatchObject({ problem: { seq: 1 } })
  database.close()
  await rm(folder, { recursive: true })
})

describe('a record', () => {
  it('a record is hashed over a form that never changes', () => {
    const { store, trail } = rig.fill(1)
    const record = store.read(1)!
    expect(canonicalForm({ ...record, uid: 'u', previousHash: new Uint8Array(2) })).toBe(
      '[1,"0000",1,"u",1767225600000,"system","edgehostd","","","action","test","","","record 1","success",null,""]',
    )
    expect(hex(record.hash)).toBe(hex(hashOf(record)))
    expect(hex(trail.head().hash)).toBe(hex(record.hash))
  })

  it('a record with the uid of a user or a project has the second form, which never changes either', () => {
    const { store } = rig.fill(1)
    const record = { ...store.read(1)!, uid: 'u', previousHash: new Uint8Array(2) }
    const rest =
      '"0000",1,"u",1767225600000,"system","edgehostd","","","action","test","","","record 1","success",null,""'
    expect(canonicalForm({ ...record, actorUid: 'a', projectUid: 'p' })).toBe(`[2,${rest},"a","p"]`)
    expect(canonicalForm({ ...record, actorUid: 'a' })).toBe(`[2,${rest},"a",""]`)
    expect(canonicalForm({ ...record, projectUid: 'a' })).toBe(`[2,${rest},"","a"]`)
    expect(canonicalForm(record)).toBe(`[1,${rest}]`)
  })

  it('a trail with both forms is read as it was hashed, and verified', async () => {
    const { trail, verify, store } = rig.open()
    trail.append(entry('one'))
    const uid = trail.begin({ ...entry('two'), actorUid: 'a', projectUid: 'p' })!
    trail.finish(uid, { ...entry('two'), actorUid: 'a', projectUid: 'p' })
    trail.append(entry('three'))
    expect(store.read(2)).toMatchObject({ actorUid: 'a', projectUid: 'p' })
    expect(await verify()).toMatchObject({ isIntact: true, count: 3 })
    rig.tamper("UPDATE audit SET project_uid = '' WHERE seq = 2")
    expect(await verify()).toMatchObject({ isIntact: false, problem: { seq: 2 } })
  })

  it('a record contains the hash of the one before; the first one zeros', () => {
    const { store } = rig.fill(2)
    expect(hex(store.read(1)!.previousHash)).toBe('0'.repeat(64))
    expect(hex(store.read(2)!.previousHash)).toBe(hex(store.read(1)!.hash))
  })

  it('a record is read from the disk as it was hashed, whatever its texts', async () => {
    const { trail, verify, store } = rig.open()
    for (const typed of [
      '\ud800 lone',
      'nul\0nul',
      '\u001b[2J\r\nforged line',
      'ü'.repeat(300),
      '\u202egnp.exe',
    ])
      trail.append({ ...entry(typed), actor: typed, resourceName: typed, requestId: typed })
    expect(await verify()).toMatchObject({ isIntact: true, count: 5 })
    expect(store.read(3)!.actor).toBe('\\u{1b}[2J\\u{d}\\u{a}forged line')
  })

  it('a record can neither be altered nor removed by a statement of the daemon', () => {
    rig.fill(2)
    expect(() => rig.database.sql.exec("UPDATE audit SET actor = 'mallory'")).toThrow('append-only')
    expect(() => rig.database.sql.exec('DELETE FROM audit WHERE seq = 1')).toThrow('append-only')
  })

  it('a record is a log line of its own kind, whatever the log level', () => {
    rig.captured.log.level = 'fatal'
    rig.fill(1)
    const { store } = rig.open()
    expect(rig.auditLines()).toEqual([
      expect.objectContaining({
        msg: 'record 1',
        seq: 1,
        hash: hex(store.read(1)!.hash),
        outcome: 'success',
      }),
    ])
  })

  it('a record within a transaction is refused, since the transaction may be rolled back', () => {
    const { trail } = rig.open()
    expect(() => rig.database.transaction(() => trail.append(entry('x')))).toThrow('transaction')
  })
})

it('the head of the trail is logged hourly, also when retention fails', async () => {
  const { trail, store } = rig.fill(3)
  const settings = { retentionDays: 1, limitBytes: 1e9 }
  const audit = createAudit({
    ...{ settings, read: async () => [], edgeHostId: 'edge-test', startMessage: 'Start' },
    ...{ listTokens: createContinueTokens(Buffer.alloc(32, 1)), ...rig, log: rig.captured.log },
  })
  const job = audit.jobs!.find(({ name }) => name === 'audit trail')!
  expect(job.schedule).toMatch(/^\d+ \d+ \* \* \* \*$/)
  rig.captured.log.level = 'fatal'
  await job.run()
  const line = { kind: 'audit-head', seq: 3, hash: hex(trail.head().hash) }
  expect(rig.captured.lines.at(-1)).toMatchObject(line)
  rig.tamper('UPDATE audit SET at = 0 WHERE seq = 2')
  rig.clock.turn(2 * dayMs)
  await expect(job.run()).rejects.toThrow('damaged')
  expect(rig.captured.lines.filter(({ kind }) => kind === 'audit-head')).toHaveLength(2)
  expect(store.first()).toBe(1)
})

describe('text of a record', () => {
  it.each([
    ['abc', 256, 'abc'],
    ['abcdef', 3, 'abc'],
    ['aüb', 2, 'a'],
    ['a😀', 4, 'a'],
    ['\u0000', 256, '\\u{0}'],
    ['\ud83d', 256, '\ufffd'],
  ])('the text %j in %d bytes is %j', (text, bytes, expected) => {
    expect(plainText(text, bytes)).toBe(expected)
  })
})

describe('verification', () => {
  it.each([0, 1, 200, 450])('verification finds a trail of %d records intact', async (count) => {
    const { verify, trail } = rig.fill(count)
    const first = count > 0 ? 1 : 0
    const { head, ...found } = await verify()
    expect(found).toEqual({ isIntact: true, count, first })
    expect([head.seq, hex(head.hash)]).toEqual([count, hex(trail.head().hash)])
  })

  it.each([
    ['altered', "UPDATE audit SET actor = 'mallory' WHERE seq = 300", 300, 'altered'],
    ['altered in its time', 'UPDATE audit SET at = at + 1 WHERE seq = 300', 300, 'altered'],
    ['removed', 'DELETE FROM audit WHERE seq = 300', 301, 'missing'],
    ['removed at the begin', 'DELETE FROM audit WHERE seq <= 10', 11, 'missing'],
    ['cut off the end', 'DELETE FROM audit WHERE seq > 440', 441, 'removed from the end'],
    ['all removed', 'DELETE FROM audit', 1, 'removed from the end'],
    [
      'reordered',
      'UPDATE audit SET seq = -1 WHERE seq = 300; UPDATE audit SET seq = 300 WHERE seq = 301; UPDATE audit SET seq = 301 WHERE seq = -1',
      300,
      'does not match the previous',
    ],
    [
      'removed with a forged checkpoint',
      'DELETE FROM audit WHERE seq <= 10; INSERT INTO audit_checkpoint VALUES (1, 20, 10)',
      20,
      'checkpoint is missing',
    ],
  ])('verification finds a record that was %s', async (_what, statements, seq, message) => {
    const { verify } = rig.fill(450)
    rig.tamper(statements)
    const { isIntact, problem } = await verify()
    expect(isIntact).toBe(false)
    expect(problem).toMatchObject({ seq })
    expect(problem?.message).toContain(message)
  })

  it('verification finds a chain that was computed again by a head that was kept elsewhere', async () => {
    const { trail, store } = rig.fill(5)
    const kept = trail.head()
    rig.tamper('DELETE FROM audit WHERE seq >= 4')
    const { trail: forged } = rig.open()
    forged.append(entry('forged'))
    forged.append(entry('forged'))
    const again = { store, head: forged.head() }
    expect(await verifyTrail(again)).toMatchObject({ isIntact: true, count: 5 })
    expect(await verifyTrail({ ...again, expected: kept })).toMatchObject({ problem: { seq: 5 } })
  })

  it.each([
    ['the newest record altered', [450]],
    ['the chain computed again to the same length', [447, 448, 449, 450]],
  ])('verification finds %s while the daemon runs, even with correct hashes', async (_what, seqs) => {
    const { verify, store } = rig.fill(450)
    rig.tamper('')
    for (const seq of seqs) rig.forge(store, seq)
    // The chain alone is intact.
    expect(await verifyTrail({ store, head: store.head() })).toMatchObject({ isIntact: true })
    expect((await verify()).problem).toEqual({
      seq: 450,
      message: 'the record is not the one that the daemon wrote',
    })
  })

  it('verification compares a kept head with the checkpoint, and reports an older head as not comparable', async () => {
    const { trail, store } = rig.fill(20)
    const [removed, last] = [store.read(5)!, store.read(20)!]
    rig.clock.turn(2 * dayMs)
    trail.append(entry('young'))
    await retain({ store, trail, clock: rig.clock, retentionDays: 1, limitBytes: 1e9 })
    const compare = (expected: AuditHead) => verifyTrail({ store, head: trail.head(), expected })
    expect(await compare(last)).toMatchObject({ isIntact: true, first: 21 })
    expect(await compare({ seq: 20, hash: removed.hash })).toMatchObject({
      isIntact: false,
      problem: { seq: 20, message: 'the record that retention removed is not the one whose hash was given' },
    })
    expect(await compare(removed)).toMatchObject({
      isIntact: false,
      problem: { seq: 5, message: 'the record was removed by retention and cannot be compared' },
    })
  })

  it('verification finds an end that was cut off while the daemon was down by a head that was kept elsewhere', async () => {
    const { trail, store } = rig.fill(5)
    const expected = trail.head()
    rig.tamper('DELETE FROM audit WHERE seq = 5')
    const { trail: later } = rig.open()
    expect(await verifyTrail({ store, head: later.head(), expected })).toMatchObject({
      problem: { seq: 5, message: 'records were removed from the end' },
    })
  })

  it('verification works while records are written and retention removes others', async () => {
    const { trail, store, verify } = rig.fill(900)
    const verified = verify()
    trail.append(entry('meanwhile'))
    rig.clock.turn(2 * dayMs)
    const removed = retain({ store, trail, clock: rig.clock, retentionDays: 1, limitBytes: 1e9 })
    expect(await verified).toMatchObject({ isIntact: true })
    expect(await removed).toBe(901)
    expect(await verify()).toMatchObject({ isIntact: true, first: 902 })
  })
})

describe('a trail that cannot be written', () => {
  it('a database that cannot be written stores no intent', () => {
    const { trail } = rig.fill(1)
    rig.full()
    expect(trail.begin(entry('change'))).toBeUndefined()
  })

  it('records that cannot be written are logged and counted, and a later record reports them', async () => {
    const { trail, store, verify } = rig.fill(1)
    rig.full()
    for (let count = 0; count < 3; count += 1) trail.append(entry(`missed ${count}`))
    expect(trail.unwritten()).toBe(3)
    expect(trail.head().seq).toBe(1)
    expect(rig.auditLines().map(({ msg, seq }) => [msg, seq])).toEqual([
      ['record 1', 1],
      ['missed 0', null],
      ['missed 1', null],
      ['missed 2', null],
    ])
    expect(rig.captured.texts().filter((text) => text.includes('cannot be written'))).toHaveLength(1)
    rig.freed()
    trail.append(entry('again'))
    expect(store.read(2)).toMatchObject({
      kind: 'audit',
      outcome: 'failed',
      message: 'could not be written since 2026-01-01T00:00:00.000Z: 3 records are in the journal only',
    })
    expect(store.read(3)).toMatchObject({ message: 'again' })
    expect(await verify()).toMatchObject({ isIntact: true, count: 3 })
  })

  it('a file that may not grow counts as a database that cannot be written', () => {
    const { trail } = rig.fill(1)
    const { page_count: pages } = rig.database.sql.prepare('PRAGMA page_count').get() as {
      page_count: number
    }
    rig.database.sql.exec(`PRAGMA max_page_count = ${pages}`)
    const before = trail.head().seq
    for (let count = 0; count < 100; count += 1) trail.append(entry('x'.repeat(1_000)))
    expect(trail.unwritten()).toBeGreaterThan(50)
    expect(trail.unwritten() + trail.head().seq - before).toBe(100)
  })

  it('an intent from before stays, and its end is recorded later', async () => {
    const { trail, store, verify } = rig.open()
    const uid = trail.begin(entry('change'))!
    rig.full()
    trail.finish(uid, entry('changed'))
    rig.freed()
    trail.append(entry('next'))
    expect(store.slice(1, 9).map(({ message, uid: each }) => [message, each === uid])).toEqual([
      ['changed', true],
      ['next', false],
    ])
    expect(store.intents()).toEqual([])
    expect(await verify()).toMatchObject({ isIntact: true })
  })
})

describe('a trail that another program writes', () => {
  it('after records of another program the trail misses one record, continues behind them, and reports them', async () => {
    const { trail, store, verify } = rig.fill(2)
    const kept = trail.head()
    const { trail: other } = rig.open()
    other.append(entry('foreign'))
    const foreign = other.head()
    expect(trail.append(entry('missed'))).toMatch(/^[0-9a-f-]{36}$/)
    expect(trail.unwritten()).toBe(1)
    expect(rig.auditLines().at(-1)).toMatchObject({ msg: 'missed', seq: null })
    trail.append(entry('next'))
    const heads = [foreign, kept].map(({ seq, hash }) => `${seq}:${hex(hash)}`)
    expect(store.slice(3, 9).map(({ message }) => message)).toEqual([
      'foreign',
      `another program changed the trail: its newest record was ${heads[0]}, not ${heads[1]}`,
      expect.stringContaining('1 records are in the journal only'),
      'next',
    ])
    expect(rig.captured.texts()).toContain('another program changed the audit trail')
    expect(await verify()).toMatchObject({ isIntact: true, count: 6 })
    expect(other.head().seq).toBe(3)
  })

  it('no intent is stored when the database gives any error', () => {
    const { trail } = rig.open()
    rig.database.sql.exec('DROP TABLE audit_intent')
    expect(trail.begin(entry('change'))).toBeUndefined()
  })
})
