import { createSecretKey } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { createAccessTokens } from '../../src/auth/tokens.ts'
import type { Account } from '../../src/auth/accounts.ts'
import { createSessionStore } from '../../src/auth/session-store.ts'
import { createSessions } from '../../src/auth/sessions.ts'
import { openDatabase } from './open-database.ts'
import { captureLog } from './https-server.ts'
import { bob } from './test-account.ts'
import { createTurningClock } from './turning-clock.ts'

/** Sessions over a database of their own, with a clock to turn; they end with the test. */
export async function createTestSessions({
  file = ':memory:',
  markFile = '',
  clock = createTurningClock(),
} = {}) {
  const { log, lines } = captureLog()
  const database = openDatabase(file, log)
  const accessTokens = await createAccessTokens(Buffer.alloc(32, 1))
  const settings = {
    refreshKey: createSecretKey(Buffer.alloc(32, 2)),
    clock,
    log,
    accessMinutes: 15,
    renewalHours: 2,
    extendedRenewalHours: 24,
    maximumDays: 7,
    replaySeconds: 30,
  }
  /** The sessions after a restart: no token has been checked yet. */
  const start = () =>
    createSessions({
      store: createSessionStore(database, markFile || undefined),
      accessTokens,
      ...settings,
    })
  const sessions = start()
  let isOpen = true
  const stop = () => {
    if (isOpen) database.close()
    isOpen = false
  }
  onTestFinished(stop)
  return {
    clock,
    sessions,
    database,
    start,
    stop,
    reasons: () => lines.flatMap(({ reason }) => (typeof reason === 'string' ? [reason] : [])),
    create(account: Account = bob, isExtended = false) {
      sessions.makeRoom(account.name)
      return sessions.create(account, '192.0.2.1', isExtended)
    },
    renew: (token: string, isExtended = false, account: Account | undefined = bob) =>
      sessions.renew(token, isExtended, () => Promise.resolve(account)),
  }
}
