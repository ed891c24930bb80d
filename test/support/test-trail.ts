import { systemEntry } from '../../src/audit/own-entries.ts'
import { chainRecord, hashOf, type AuditEntry } from '../../src/audit/record.ts'
import { createTrailStore, type TrailStore } from '../../src/audit/trail-store.ts'
import { createTrail } from '../../src/audit/trail.ts'
import { verifyTrail } from '../../src/audit/verification.ts'
import { openDatabase } from './open-database.ts'
import { captureLog } from './https-server.ts'
import { createTurningClock } from './turning-clock.ts'

export const entry = (message: string): AuditEntry => systemEntry({ action: 'action', kind: 'test', message })

/** A trail in memory, with a clock that a test turns. */
export function createTestTrail() {
  const clock = createTurningClock(Date.UTC(2026, 0, 1))
  const captured = captureLog()
  const database = openDatabase(':memory:', captured.log)

  function open() {
    const store = createTrailStore(database)
    const trail = createTrail({ store, database, clock, log: captured.log })
    return { store, trail, verify: () => verifyTrail({ store, head: trail.head() }) }
  }

  return {
    clock,
    captured,
    database,
    open,
    fill(count: number) {
      const opened = open()
      for (let number = 1; number <= count; number += 1) opened.trail.append(entry(`record ${number}`))
      return opened
    },
    /** Adds that many records at once. */
    bulk(count: number) {
      const store = createTrailStore(database)
      database.transaction(() => {
        let head = store.head()
        for (let number = 1; number <= count; number += 1) {
          const record = chainRecord(head, entry(`record ${number}`), `uid ${number}`, clock.now())
          store.put(record)
          head = record
        }
      })
      return open()
    },
    /** Alters the file as its owner can: without the triggers. */
    tamper(statements: string) {
      database.sql.exec('DROP TRIGGER audit_is_not_altered; DROP TRIGGER audit_is_not_removed')
      database.sql.exec(statements)
    },
    /** A forger gives an altered record the hash that it must have. */
    forge(store: TrailStore, seq: number) {
      const record = { ...store.read(seq)!, actor: 'mallory', previousHash: store.read(seq - 1)!.hash }
      const update = database.sql.prepare(
        'UPDATE audit SET actor = ?, previous_hash = ?, hash = ? WHERE seq = ?',
      )
      update.run(record.actor, record.previousHash, hashOf(record), seq)
    },
    auditLines: () => captured.lines.filter(({ kind }) => kind === 'audit'),
    full: () => database.sql.exec('PRAGMA query_only = ON'),
    freed: () => database.sql.exec('PRAGMA query_only = OFF'),
  }
}

export type TestTrail = ReturnType<typeof createTestTrail>
