import { describe, expect, it } from 'vitest'
import { seeDisk } from '../../../src/errors/advice.ts'
import { createHealth } from '../../../src/service/health.ts'
import { serviceRoutes } from '../../../src/service/routes.ts'
import { createServer } from '../../../src/api/server.ts'
import { openDatabase } from '../../support/open-database.ts'
import { createWriteProbe } from '../../../src/store/room.ts'
import { captureLog } from '../../support/https-server.ts'
import { serviceStatus, type ErrorReply } from '../../support/test-edge.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

async function createEdge() {
  const { log, lines, texts } = captureLog()
  const state = { moving: true, writable: true }
  const health = createHealth({
    checks: [
      { name: 'jobs', kind: 'alive', holds: () => state.moving },
      { name: 'database', kind: 'ready', holds: () => state.writable },
    ],
    log,
  })
  const { app } = createServer({
    log,
    bodyLimitBytes: 1_000,
    mode: 'airgap',
    identify: () => undefined,
    onAuthenticated: () => undefined,
  })
  await app.register(serviceRoutes, {
    health,
    status: async () => serviceStatus('airgap'),
    attention: async () => ({ items: [] }),
  })
  const ask = async (url: string) => {
    const reply = await app.inject({ url })
    return [reply.statusCode, reply.json<ErrorReply & { status?: string }>()] as const
  }
  return { app, state, lines, texts, ask }
}

describe('healthz and readyz', () => {
  it('healthz and readyz say ok and nothing else, without a token', async () => {
    const { ask } = await createEdge()
    expect(await ask('/healthz')).toEqual([200, { status: 'ok' }])
    expect(await ask('/readyz')).toEqual([200, { status: 'ok' }])
  })

  it('healthz and readyz refuse with the error body and without a reason', async () => {
    const { ask, state } = await createEdge()
    state.writable = false
    expect(await ask('/healthz')).toEqual([200, { status: 'ok' }])
    const refusal = { code: 'NotReady', message: 'not now', ref: expect.any(String) }
    expect(await ask('/readyz')).toEqual([503, refusal])
    state.moving = false
    expect(await ask('/healthz')).toEqual([503, refusal])
    Object.assign(state, { moving: true, writable: true })
    expect(await ask('/readyz')).toEqual([200, { status: 'ok' }])
  })

  it('healthz and readyz log the reason when it changes, however often they are requested', async () => {
    const { ask, state, lines } = await createEdge()
    await ask('/readyz')
    state.writable = false
    for (let times = 0; times < 5; times += 1) await ask('/readyz')
    state.moving = false
    await ask('/readyz')
    Object.assign(state, { moving: true, writable: true })
    await ask('/readyz')
    const said = lines.filter(({ level }) => Number(level) > 20)
    expect(said.map(({ level, msg, failed }) => [level, msg, failed])).toEqual([
      [40, 'not ready', ['database']],
      [40, 'not ready', ['jobs', 'database']],
      [30, 'ready', undefined],
    ])
  })
})

it('a daemon that is not ready yet causes no warning', async () => {
  const { ask, state, lines } = await createEdge()
  state.writable = false
  await ask('/readyz')
  state.writable = true
  await ask('/readyz')
  expect(lines.map(({ level, msg }) => [level, msg]).filter(([level]) => level !== 20)).toEqual([
    [30, 'not ready'],
    [30, 'ready'],
  ])
})

describe('the write probe', () => {
  it('the check of the database says that it can be written, and leaves it unchanged', () => {
    const { log } = captureLog()
    const database = openDatabase(':memory:', log)
    const version = () => database.sql.prepare('PRAGMA user_version').get()
    const before = version()
    expect(createWriteProbe(database, { log, monotonic: () => 0 })()).toBe(true)
    expect(version()).toEqual(before)
    database.close()
  })

  it('the check of the database notices when it cannot be written and when it can again, with at most one try in ten seconds', () => {
    const { log, texts } = captureLog()
    const clock = createTurningClock()
    const database = openDatabase(':memory:', log)
    const isWritable = createWriteProbe(database, { log, monotonic: () => clock.monotonic() })
    database.sql.exec('PRAGMA query_only = ON')
    expect(isWritable()).toBe(false)
    expect(isWritable()).toBe(false)
    expect(texts()).toEqual([`the database could not be written; ${seeDisk}`])
    database.sql.exec('PRAGMA query_only = OFF')
    clock.turn(9_999)
    expect(isWritable()).toBe(false)
    clock.turn(1)
    expect(isWritable()).toBe(true)
    database.close()
    clock.turn(10_000)
    expect(isWritable()).toBe(false)
  })
})
