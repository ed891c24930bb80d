// Runs the stages of user data. They are commands, which may not be done twice: the row says `running` before they begin, and a daemon that finds
// that at its start was ended while they ran.

import type { SystemEntry } from '../audit/own-entries.ts'
import type { Attention, BusyReason } from '../root/room.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { StagesStatus, StageStep } from './stage-steps.ts'
import type { KeptUserData, UserDataStore } from './user-data-store.ts'

interface StagesRunnerOptions {
  readonly store: UserDataStore
  /** Runs them as root. @throws Error with a reason for operators */
  readonly run: (steps: readonly StageStep[]) => Promise<void>
  readonly record: (entry: SystemEntry) => void
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

/** Stages of this host. */
export interface StagesRunner {
  /** Once, before the first turn. */
  resume(): void
  /** Runs what waits. To be called each second, not twice at a time. */
  tick(): Promise<void>
  attention(): readonly Attention[]
  busy(): readonly BusyReason[]
}

export function createStagesRunner({ store, run, record, clock, log }: StagesRunnerOptions): StagesRunner {
  function note(kept: KeptUserData, state: StagesStatus['state'], message = ''): void {
    // What has begun is not needed any more, and may have secrets.
    const steps = state === 'waiting' ? kept.steps : undefined
    store.put({ ...kept, steps, stages: { state, message, at: clock.now() } })
  }
  const end = (message: string, state: 'done' | 'failed') => {
    const kept = store.current()
    if (kept === undefined) return
    note(kept, state, message)
    record({
      action: 'action',
      kind: 'userData',
      resourceUid: kept.uid,
      outcome: state === 'done' ? 'success' : 'failed',
      message:
        state === 'done' ? 'The stages of user data have run' : `The stages of user data failed: ${message}`,
    })
  }
  return {
    resume() {
      if (store.current()?.stages?.state === 'running')
        end('edgehostd was ended while they ran, and how far they came is not known', 'failed')
    },
    async tick() {
      const kept = store.current()
      if (kept?.stages?.state !== 'waiting') return
      if (kept.steps === undefined) {
        end('they were sealed by a secret that this host has not any more', 'failed')
        return
      }
      note(kept, 'running')
      try {
        await run(kept.steps)
        end('', 'done')
      } catch (error) {
        log.error({ err: error }, 'the stages of user data failed')
        end(error instanceof Error ? error.message : String(error), 'failed')
      }
    },
    attention() {
      const stages = store.current()?.stages
      if (stages?.state !== 'failed') return []
      const message = `the stages of user data failed: ${stages.message}`
      return [{ code: 'StagesFailed', severity: 'warning', message, since: stages.at }]
    },
    busy() {
      const state = store.current()?.stages?.state
      return state === 'running' || state === 'waiting'
        ? [{ reason: 'Stages', message: 'the stages of user data are being run' }]
        : []
    },
  }
}
