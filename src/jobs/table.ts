import type { Job } from './jobs.ts'

/** What recurs, each a verb of a room. */
export interface RecurringWork {
  readonly refreshSeconds: () => Promise<void>
  readonly refreshOwnAddresses: () => Promise<void>
  readonly refreshMinutes: () => Promise<void>
  readonly checkAccounts: () => Promise<void>
  readonly keepGuesses: () => Promise<void>
  readonly renewCertificate: () => Promise<void>
  readonly keepAudit: () => Promise<void>
}

/** When each of them is done. */
export function createJobTable(work: RecurringWork): readonly Job[] {
  return [
    {
      name: 'host facts, seconds',
      schedule: '*/5 * * * * *',
      stuckAfterMs: 300_000,
      run: work.refreshSeconds,
    },
    {
      name: 'own addresses',
      schedule: '*/5 * * * * *',
      stuckAfterMs: 300_000,
      run: work.refreshOwnAddresses,
    },
    {
      name: 'host facts, minutes',
      schedule: '32 */5 * * * *',
      stuckAfterMs: 900_000,
      run: work.refreshMinutes,
    },
    { name: 'failed logins', schedule: '*/10 * * * * *', stuckAfterMs: 300_000, run: work.keepGuesses },
    { name: 'accounts', schedule: '17 * * * * *', stuckAfterMs: 900_000, run: work.checkAccounts },
    { name: 'audit trail', schedule: '23 41 * * * *', stuckAfterMs: 900_000, run: work.keepAudit },
    { name: 'certificate', schedule: '47 7 * * * *', stuckAfterMs: 300_000, run: work.renewCertificate },
  ]
}
