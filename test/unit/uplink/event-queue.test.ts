import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createEventQueue, type HostEvent } from '../../../src/uplink/event-queue.ts'
import { captureLog } from '../../support/https-server.ts'
import { openDatabase } from '../../support/open-database.ts'
import { createTurningClock, minuteMs } from '../../support/turning-clock.ts'

const event = (message: string): HostEvent => ({
  ...{ severity: 'Normal', reason: 'Tried', component: 'test', message },
})

it('tells how many events could not be stored on a full disk, with the next one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'event-queue-'))
  const { log, lines } = captureLog()
  const database = openDatabase(join(folder, 'edgehostd.db'), log)
  try {
    const clock = createTurningClock(Date.UTC(2026, 0, 1))
    const queue = createEventQueue({ database, clock, log, onEvent: () => undefined })
    queue.add(event('first'))
    database.sql.exec('PRAGMA query_only = 1')
    queue.add(event('second'))
    clock.turn(minuteMs)
    queue.add(event('third'))
    expect(lines.length).toBe(2)
    database.sql.exec('PRAGMA query_only = 0')
    queue.add(event('fourth'))
    queue.add(event('fifth'))
    expect(queue.next(10).map(({ entity }) => entity.message)).toEqual([
      'first',
      '2 events of this host from 2026-01-01T00:00:00.000Z to 2026-01-01T00:01:00.000Z could not be stored, as on a full disk',
      'fourth',
      'fifth',
    ])
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
})
