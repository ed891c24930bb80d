import type { Database } from '../../store/database.ts'
import type { Step } from './step.ts'

/** Stored record of a step: no order, which may hold secrets. The plan makes that anew. */
export interface StepRecord {
  readonly key: string
  readonly title: string
  /** Empty where it belongs to no pack. */
  readonly pack: string
  readonly kind: 'action' | 'call'
  /** The last try is of a deletion; 1 or 0. */
  readonly isDeletion: 0 | 1
  readonly timeoutMs: number
  readonly state: 'running' | 'done' | 'failed'
  /** Failed tries since it was last done. */
  readonly failures: number
  /** Failure of the last try; empty otherwise. */
  readonly reason: string
  /** Of the last try; milliseconds since 1970. */
  readonly startedAt: number
  /** Of the last try; null while it runs. */
  readonly endedAt: number | null
  /** After the end of a failed try; null otherwise. */
  readonly retryMs: number | null
  /** Position up to which the output of the last try was turned into events, in bytes. */
  readonly cursor: number
}

/** The steps of the cluster and their ends, in the order of their first starts. */
export interface StepStore {
  list(): readonly StepRecord[]
  find(key: string): StepRecord | undefined
  /** Notes that a try begins. */
  begin(step: Step, at: number): void
  moveCursor(key: string, cursor: number): void
  done(key: string, at: number): void
  /** Also for a step that could not be started. */
  failed(
    step: { readonly key: string; readonly title: string; readonly pack?: string | undefined },
    end: { readonly at: number; readonly reason: string; readonly retryMs: number },
  ): void
  /** Forgets a try that was cut off, so that it counts neither as done nor as failed. */
  cutOff(key: string): void
  /** Forgets all steps. */
  clear(): void
}

const selected = `SELECT key, title, pack, kind, is_deletion AS isDeletion, timeout_ms AS timeoutMs, state, failures, reason, started_at AS startedAt,
  ended_at AS endedAt, retry_ms AS retryMs, cursor FROM cluster_step`

export function createStepStore({ sql }: Database): StepStore {
  const find = (key: string) => sql.prepare(`${selected} WHERE key = ?`).get(key) as StepRecord | undefined
  const set = (key: string, columns: string, ...values: (string | number | null)[]) =>
    void sql.prepare(`UPDATE cluster_step SET ${columns} WHERE key = ?`).run(...values, key)
  return {
    list: () => sql.prepare(`${selected} ORDER BY position`).all() as unknown as StepRecord[],
    find,
    begin({ key, title, pack = '', isDeletion = false, work: { kind }, timeoutMs }, at) {
      sql
        .prepare(
          `INSERT INTO cluster_step (key, title, pack, kind, is_deletion, timeout_ms, state, failures, reason, started_at, cursor)
          VALUES (?, ?, ?, ?, ?, ?, 'running', 0, '', ?, 0)
          ON CONFLICT (key) DO UPDATE SET title = excluded.title, pack = excluded.pack, kind = excluded.kind,
            is_deletion = excluded.is_deletion, timeout_ms = excluded.timeout_ms, state = 'running', started_at = excluded.started_at,
            ended_at = NULL, retry_ms = NULL, cursor = 0`,
        )
        .run(key, title, pack, kind, Number(isDeletion), timeoutMs, at)
    },
    moveCursor: (key, cursor) => set(key, 'cursor = ?', cursor),
    done: (key, at) =>
      set(key, "state = 'done', failures = 0, reason = '', ended_at = ?, retry_ms = NULL", at),
    failed({ key, title, pack = '' }, { at, reason, retryMs }) {
      sql
        .prepare(
          `INSERT INTO cluster_step (key, title, pack, kind, timeout_ms, state, failures, reason, started_at, ended_at, retry_ms, cursor)
          VALUES (?1, ?2, ?3, 'call', 0, 'failed', 1, ?4, ?5, ?5, ?6, 0)
          ON CONFLICT (key) DO UPDATE SET state = 'failed', failures = failures + 1, reason = excluded.reason,
            ended_at = excluded.ended_at, retry_ms = excluded.retry_ms`,
        )
        .run(key, title, pack, reason, at, retryMs)
    },
    cutOff(key) {
      // A try before it may have failed; then the step still waits for its next try, at once.
      sql.prepare('DELETE FROM cluster_step WHERE key = ? AND failures = 0').run(key)
      set(key, "state = 'failed', ended_at = started_at, retry_ms = 0")
    },
    clear() {
      sql.exec('DELETE FROM cluster_step')
    },
  }
}
