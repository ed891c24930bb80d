import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Value from 'typebox/value'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createFlood, createRefusalSum } from '../../../src/audit/flood.ts'
import { chainRecord, type AuditEntry } from '../../../src/audit/record.ts'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { Audit } from '../../../src/audit/config.ts'
import { errorTable } from '../../../src/edgehostd/declarations.ts'
import { openDatabase } from '../../support/open-database.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock, minuteMs } from '../../support/turning-clock.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-year-'))
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

const monthsOfYear = 12
const minutesOfMonth = 30.5 * 24 * 60

/** Records that a flood which never pauses adds in a year: in each month as many. */
function recordsOfYear(): { singles: number; sums: number } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const clock = createTurningClock()
  const found = { singles: 0, sums: 0 }
  const trail = {
    begin: () => 'uid',
    finish: () => void (found.sums += 1),
    newUid: () => 'uid',
    append: () => 'uid',
  }
  const flood = createFlood({ trail, callers: 'without a session', monotonic: clock.monotonic })
  for (let minute = 0; minute < minutesOfMonth; minute += 1) {
    for (let each = 0; each < 12; each += 1)
      if (flood.admit()) found.singles += 1
      else flood.count('192.0.2.1', 401)
    clock.turn(minuteMs)
    vi.advanceTimersByTime(minuteMs)
  }
  return { singles: monthsOfYear * found.singles, sums: monthsOfYear * found.sums }
}

/** Bytes that a record takes in a large database, indexes included. */
function bytesOf(name: string, entryOf: (index: number) => AuditEntry): number {
  const file = join(folder, name)
  const database = openDatabase(file, captureLog().log)
  const store = createTrailStore(database)
  const before = store.usedBytes()
  const count = 2_000
  database.transaction(() => {
    let head = store.head()
    for (let index = 0; index < count; index += 1) {
      const uid = `0195a0e0-0000-7000-8000-${String(index).padStart(12, '0')}`
      const record = chainRecord(head, entryOf(index), uid, Date.UTC(2026, 0, 1) + index)
      store.put(record)
      head = record
    }
  })
  const bytes = (store.usedBytes() - before) / count
  database.close()
  expect(statSync(file).size).toBeGreaterThan(count * 500)
  return bytes
}

const longest = (texts: readonly string[]) =>
  texts.reduce((one, other) => (other.length > one.length ? other : one))
// The longest name that useradd(8) gives, and the longest way to write an address.
const longestName = 'n'.repeat(32)
const addressOf = (index: number) => `2001:db8:aaaa:bbbb:cccc:dddd:eeee:${(0x1000 + index).toString(16)}`

it('a year of any flood fits into the default size of the trail', () => {
  const audit = Value.Create(Audit)
  const { singles, sums } = recordsOfYear()
  const single = bytesOf('singles.db', (index) => ({
    ...{ actorType: 'user', actor: longestName, role: 'viewer', address: addressOf(index) },
    ...{ action: 'activity', kind: 'definition', resourceName: longestName },
    resourceUid: `0195a0e0-0000-7000-8000-${String(index).padStart(12, '0')}`,
    message: `${'What a route says of itself '.repeat(4)}, unknown user: ${longest(Object.keys(errorTable))}`,
    ...{ outcome: 'refused', status: 401, requestId: 'r'.repeat(64) },
  }))
  const statuses = new Set(Object.values(errorTable).map(({ status }) => status))
  const sum = bytesOf('sums.db', (index) => {
    const all = createRefusalSum('without a session')
    for (const status of statuses)
      for (let each = 0; each < 100; each += 1) all.add(addressOf(index + (each % 4)), status)
    return all.entry(15)
  })
  // Callers without a session have one budget, logged-in users another.
  const total = 2 * (singles * single + sums * sum)
  expect(total).toBeLessThan(audit.limitBytes)
})
