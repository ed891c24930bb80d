import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAudit, type Audit } from '../../src/audit/audit.ts'
import { canonicalForm, hashOf, hex, plainText, type AuditEntry } from '../../src/audit/record.ts'
import { retain } from '../../src/audit/retention.ts'
import { createTrailStore } from '../../src/audit/trail-store.ts'
import { createTrail, systemEntry } from '../../src/audit/trail.ts'
import { verifyTrail } from '../../src/audit/verification.ts'
import { openDatabase, type Database } from '../../src/store/database.ts'
import { captureLog } from '../support/https-server.ts'
import { createTurningClock, dayMs, type TurningClock } from '../support/turning-clock.ts'

let clock: TurningClock
let database: Database
let captured: ReturnType<typeof captureLog>
beforeEach(() => {
  clock = createTurningClock(Date.UTC(2026, 0, 1))
  captured = captureLog()
  database = openDatabase(':memory:', captured.log)
})
afterEach(() => database.close())

function open() {
  const store = createTrailStore(database)
  const trail = createTrail({ store, database, clock, log: captured.log })
  return { store, trail, verify: () => verifyTrail({ store, head: trail.head() }) }
}
const entry = (message: string): AuditEntry => systemEntry({ action: 'action', kind: 'test', message })
function fill(count: number) {
  const opened = open()
  for (let number = 1; number <= count; number += 1) opened.trail.append(entry(`record ${number}`))
  return opened
}
/** Who can write the file is not held back by triggers. */
function tamper(statements: string) {
  database.sql.exec('DROP TRIGGER audit_is_not_altered; DROP TRIGGER audit_is_not_removed')
  database.sql.exec(statements)
}
const auditLines = () => captured.lines.filter(({ kind }) => kind === 'audit')
const full = () => database.sql.exec('PRAGMA query_only = ON')
const freed = () => database.sql.exec('PRAGMA query_only = OFF')

describe('a record', () => {
  it('is hashed over a form that never changes', () => {
    const { store, trail } = fill(1)
    const record = store.read(1)!
    expect(canonicalForm({ ...record, uid: 'u', previousHash: new Uint8Array(2) })).toBe(
      '[1,"0000",1,"u",1767225600000,"system","edgehostd","","","action","test","","","record 1","success",null,""]',
    )
    expect(hex(record.hash)).toBe(hex(hashOf(record)))
    expect(hex(trail.head().hash)).toBe(hex(record.hash))
  })

  it('holds the hash of the one before; the first one zeros', () => {
    const { store } = fill(2)
    expect(hex(store.read(1)!.previousHash)).toBe('0'.repeat(64))
    expect(hex(store.read(2)!.previousHash)).toBe(hex(store.read(1)!.hash))
  })

  it('comes back from the disk as it was hashed, whatever was typed', async () => {
    const { trail, verify, store } = open()
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

  it('can neither be altered nor removed by a statement of the daemon', () => {
    fill(2)
    expect(() => database.sql.exec("UPDATE audit SET actor = 'nobody'")).toThrow('append-only')
    expect(() => database.sql.exec('DELETE FROM audit WHERE seq = 1')).toThrow('append-only')
  })

  it('is a line of its own kind, whatever the level of the log', () => {
    captured.log.level = 'fatal'
    fill(1)
    const { store } = open()
    expect(auditLines()).toEqual([
      expect.objectContaining({
        msg: 'record 1',
        seq: 1,
        hash: hex(store.read(1)!.hash),
        outcome: 'success',
      }),
    ])
  })

  it('is refused within a transaction, whose end nobody knows', () => {
    const { trail } = open()
    expect(() => database.transaction(() => trail.append(entry('x')))).toThrow('transaction')
  })
})

describe('text of a record', () => {
  it.each([
    ['abc', 256, 'abc'],
    ['abcdef', 3, 'abc'],
    ['aüb', 2, 'a'],
    ['a😀', 4, 'a'],
    ['\u0000', 256, '\\u{0}'],
    ['\ud83d', 256, '\ufffd'],
  ])('%j in %d bytes is %j', (text, bytes, expected) => {
    expect(plainText(text, bytes)).toBe(expected)
  })
})

describe('verification', () => {
  it.each([0, 1, 200, 450])('finds a trail of %d records intact', async (count) => {
    const { verify, trail } = fill(count)
    const first = count > 0 ? 1 : 0
    const { head, ...found } = await verify()
    expect(found).toEqual({ isIntact: true, count, first })
    expect([head.seq, hex(head.hash)]).toEqual([count, hex(trail.head().hash)])
  })

  it.each([
    ['altered', "UPDATE audit SET actor = 'somebody else' WHERE seq = 300", 300, 'altered'],
    ['altered in its time', 'UPDATE audit SET at = at + 1 WHERE seq = 300', 300, 'altered'],
    ['removed', 'DELETE FROM audit WHERE seq = 300', 301, 'missing'],
    ['removed at the begin', 'DELETE FROM audit WHERE seq <= 10', 11, 'missing'],
    ['cut off the end', 'DELETE FROM audit WHERE seq > 440', 441, 'removed from the end'],
    ['all removed', 'DELETE FROM audit', 1, 'removed from the end'],
    [
      'reordered',
      'UPDATE audit SET seq = -1 WHERE seq = 300; UPDATE audit SET seq = 300 WHERE seq = 301; UPDATE audit SET seq = 301 WHERE seq = -1',
      300,
      'does not follow',
    ],
    [
      'removed with a forged checkpoint',
      'DELETE FROM audit WHERE seq <= 10; INSERT INTO audit_checkpoint VALUES (1, 20, 10)',
      20,
      'checkpoint is missing',
    ],
  ])('finds a record that was %s', async (_what, statements, seq, message) => {
    const { verify } = fill(450)
    tamper(statements)
    const { isIntact, problem } = await verify()
    expect(isIntact).toBe(false)
    expect(problem).toMatchObject({ seq })
    expect(problem?.message).toContain(message)
  })

  it('finds a chain that was computed anew by a head that was kept elsewhere', async () => {
    const { trail, store } = fill(5)
    const kept = trail.head()
    tamper('DELETE FROM audit WHERE seq >= 4')
    const { trail: forged } = open()
    forged.append(entry('forged'))
    forged.append(entry('forged'))
    const again = { store, head: forged.head() }
    expect(await verifyTrail(again)).toMatchObject({ isIntact: true, count: 5 })
    expect(await verifyTrail({ ...again, expected: kept })).toMatchObject({ problem: { seq: 5 } })
  })

  it('finds an end that was cut off while the daemon was down by a head that was kept elsewhere', async () => {
    const { trail, store } = fill(5)
    const expected = trail.head()
    tamper('DELETE FROM audit WHERE seq = 5')
    const { trail: later } = open()
    expect(await verifyTrail({ store, head: later.head(), expected })).toMatchObject({
      problem: { seq: 5, message: 'records were removed from the end' },
    })
  })

  it('goes on while records are written and retention takes some away', async () => {
    const { trail, store, verify } = fill(900)
    const verified = verify()
    trail.append(entry('meanwhile'))
    clock.turn(2 * dayMs)
    const removed = retain({ store, trail, clock, retentionDays: 1, limitBytes: 1e9 })
    expect(await verified).toMatchObject({ isIntact: true })
    expect(await removed).toBe(901)
    expect(await verify()).toMatchObject({ isIntact: true, first: 902 })
  })
})

describe('retention', () => {
  const limits = { retentionDays: 10, limitBytes: 1e9 }

  it('removes what is too old, and leaves a checkpoint that verification accepts', async () => {
    const { store, trail, verify } = fill(250)
    const last = store.read(250)!
    clock.turn(20 * dayMs)
    trail.append(entry('young'))
    expect(await retain({ store, trail, clock, ...limits })).toBe(250)
    expect(await verify()).toMatchObject({ isIntact: true, first: 251, count: 2 })
    expect(store.read(252)).toMatchObject({
      kind: 'checkpoint',
      resourceName: '250',
      resourceUid: hex(last.hash),
    })
  })

  it('removes the oldest beyond the size', async () => {
    const { store, trail, verify } = fill(1_000)
    const limitBytes = store.endOffset(1_000) / 2
    const removed = await retain({ store, trail, clock, ...limits, limitBytes })
    expect(removed).toBeGreaterThan(490)
    expect(removed).toBeLessThan(510)
    expect(await verify()).toMatchObject({ isIntact: true, first: removed + 1 })
  })

  it('removes nothing that is young and small', async () => {
    const { store, trail } = fill(10)
    expect(await retain({ store, trail, clock, ...limits })).toBe(0)
    expect(trail.head().seq).toBe(10)
  })

  it('can be done again and again', async () => {
    const { store, trail, verify } = fill(10)
    for (let round = 0; round < 5; round += 1) {
      clock.turn(20 * dayMs)
      trail.append(entry('young'))
      await retain({ store, trail, clock, ...limits })
    }
    expect(await verify()).toMatchObject({ isIntact: true, count: 2, first: 19 })
  })

  it('that was interrupted is intact, and ends what it began', async () => {
    const { store, trail, verify } = fill(10)
    clock.turn(20 * dayMs)
    // The state between the checkpoint and the end of the removal.
    await retain({ store: { ...store, remove: () => 0 }, trail, clock, ...limits })
    store.remove(3)
    expect(await verify()).toMatchObject({ isIntact: true, first: 4 })
    expect(await retain({ store, trail, clock, ...limits })).toBe(7)
    expect(await verify()).toMatchObject({ isIntact: true, first: 11 })
  })

  it('is found out when it removes more than its checkpoint says', async () => {
    const { store, trail, verify } = fill(10)
    clock.turn(20 * dayMs)
    trail.append(entry('young'))
    await retain({ store, trail, clock, ...limits })
    tamper('DELETE FROM audit WHERE seq = 11')
    expect(await verify()).toMatchObject({ isIntact: false })
    database.sql.exec('UPDATE audit_checkpoint SET removed_to = 11')
    expect(await verify()).toMatchObject({ isIntact: false })
  })

  it('removes nothing where the checkpoint cannot be written', async () => {
    const { store, trail, verify } = fill(10)
    clock.turn(20 * dayMs)
    full()
    await expect(retain({ store, trail, clock, ...limits })).rejects.toThrow('readonly')
    freed()
    expect(await verify()).toMatchObject({ isIntact: true, first: 1 })
  })
})

describe('a trail that cannot be written', () => {
  it('refuses what is about to be changed', () => {
    const { trail } = fill(1)
    full()
    expect(() => trail.begin(entry('change'))).toThrow(
      expect.objectContaining({ code: 'InsufficientStorage' }),
    )
  })

  it('leaves what happens to the journal, counts it, and says so once it can', async () => {
    const { trail, store, verify } = fill(1)
    full()
    for (let count = 0; count < 3; count += 1) trail.append(entry(`missed ${count}`))
    expect(trail.unwritten()).toBe(3)
    expect(trail.head().seq).toBe(1)
    expect(auditLines().map(({ msg, seq }) => [msg, seq])).toEqual([
      ['record 1', 1],
      ['missed 0', null],
      ['missed 1', null],
      ['missed 2', null],
    ])
    expect(captured.texts().filter((text) => text.includes('cannot be written'))).toHaveLength(1)
    freed()
    trail.append(entry('again'))
    expect(store.read(2)).toMatchObject({
      kind: 'audit',
      outcome: 'failed',
      message: 'could not be written since 2026-01-01T00:00:00.000Z: 3 records are in the journal only',
    })
    expect(store.read(3)).toMatchObject({ message: 'again' })
    expect(await verify()).toMatchObject({ isIntact: true, count: 3 })
  })

  it('is one whose file may not grow, too', () => {
    const { trail } = fill(1)
    const { page_count: pages } = database.sql.prepare('PRAGMA page_count').get() as { page_count: number }
    database.sql.exec(`PRAGMA max_page_count = ${pages}`)
    const before = trail.head().seq
    for (let count = 0; count < 100; count += 1) trail.append(entry('x'.repeat(1_000)))
    expect(trail.unwritten()).toBeGreaterThan(50)
    expect(trail.unwritten() + trail.head().seq - before).toBe(100)
  })

  it('keeps what was begun before, and records its end later', async () => {
    const { trail, store, verify } = open()
    const uid = trail.begin(entry('change'))
    full()
    trail.finish(uid, entry('changed'))
    freed()
    trail.append(entry('next'))
    expect(store.slice(1, 9).map(({ message, uid: each }) => [message, each === uid])).toEqual([
      ['changed', true],
      ['next', false],
    ])
    expect(store.intents()).toEqual([])
    expect(await verify()).toMatchObject({ isIntact: true })
  })
})

describe('a change that was begun', () => {
  it('becomes one record, with the uid that was given out', () => {
    const { trail, store } = open()
    const uid = trail.begin(entry('change'))
    expect(trail.head().seq).toBe(0)
    trail.finish(uid, entry('changed'))
    expect(store.read(1)).toMatchObject({ uid, message: 'changed' })
    expect(store.intents()).toEqual([])
  })

  it('and never ended becomes a record with an unknown outcome at the next start', () => {
    const uid = open().trail.begin(entry('change'))
    const { store } = open()
    expect(store.read(1)).toMatchObject({ uid, message: 'change', outcome: 'unknown' })
    expect(store.intents()).toEqual([])
  })
})

describe('a flood of refusals', () => {
  const settings = { retentionDays: 10, limitBytes: 1e9 }
  let audit: Audit
  beforeEach(() => {
    const read = async () => []
    audit = createAudit({ settings, database, read, clock, log: captured.log })
  })
  afterEach(() => audit.stop())
  const refused = (address: string, status = 401) =>
    audit.requests.end(
      {
        ...{ actor: 'mallory', role: '', address, action: 'activity', kind: 'session', resourceName: '' },
        ...{ resourceUid: '', message: 'Log in', requestId: 'r' },
      },
      status,
      undefined,
    )
  const records = () => createTrailStore(database).slice(1, 1_000)

  it('is thirty records and one that counts the rest, whose uid they all got', () => {
    const uids = Array.from({ length: 50 }, (_each, index) => refused('192.0.2.1', index < 40 ? 401 : 429))
    audit.stop()
    expect(records()).toHaveLength(31)
    const sum = records().at(-1)
    expect(sum?.message).toBe(
      '20 more requests from 192.0.2.1 were refused within a minute: 10 with 401, 10 with 429',
    )
    expect(new Set(uids.slice(30))).toEqual(new Set([sum?.uid]))
    expect(uids.slice(0, 30)).toEqual(
      records()
        .slice(0, 30)
        .map(({ uid }) => uid),
    )
  })

  it('from one /64 counts as one', () => {
    for (let host = 0; host < 50; host += 1) refused(`2001:db8::${host.toString(16)}`)
    audit.stop()
    expect(records()).toHaveLength(31)
  })

  it('from many addresses is bounded, in records and in memory', () => {
    for (let host = 0; host < 5_000; host += 1) refused(`10.0.${host >> 8}.${host & 0xff}`)
    audit.stop()
    expect(records()).toHaveLength(121)
    expect(records().at(-1)?.message).toContain('4880 more requests from many other addresses')
  })

  it('does not hide what went well', () => {
    for (let count = 0; count < 200; count += 1) refused('192.0.2.1')
    refused('192.0.2.1', 200)
    expect(records().at(-1)).toMatchObject({ outcome: 'success' })
  })
})
