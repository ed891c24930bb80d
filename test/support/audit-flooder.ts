// Refuses requests of one address as fast as it can and prints the uid of each; for a test that kills it.
import { writeSync } from 'node:fs'
import { createAudit } from '../../src/audit/audit.ts'
import type { AuditedRequest } from '../../src/api/audit-hook.ts'
import { createContinueTokens } from '../../src/lists/continue-token.ts'
import { openDatabase } from './open-database.ts'
import { systemClock } from '../../src/system/clock.ts'
import { captureLog } from './https-server.ts'

const [file = ''] = process.argv.slice(2)
const { log } = captureLog()
const database = openDatabase(file, log)
const settings = { retentionDays: 10, limitBytes: 1e9 }
const audit = createAudit({
  ...{ settings, database, read: async () => [], edgeHostId: 'edge-test', startMessage: 'Start' },
  ...{ listTokens: createContinueTokens(Buffer.alloc(32, 1)), clock: systemClock, log },
})
const refused = (): AuditedRequest => ({
  ...{
    actorType: 'user',
    actor: '',
    role: '',
    address: '192.0.2.1',
    action: 'action',
    kind: 'unknown',
    resourceName: '',
  },
  ...{ resourceUid: '', message: 'Change at an unknown path', requestId: 'r' },
  ...{ hasSession: false, isCounted: !audit.requests.admit(false) },
})
for (;;) writeSync(1, `${await audit.requests.end(refused(), 404, undefined)}\n`)
