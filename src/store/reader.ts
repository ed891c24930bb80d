import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { AppError } from '../errors/app-error.ts'
import { storeErrors } from './codes.ts'

export interface ReadStatement {
  readonly sql: string
  /** Values of its placeholders. */
  readonly values: readonly SQLInputValue[]
}

export type ReadRow = Readonly<Record<string, SQLOutputValue>>

/** Runs reads that may take long in a thread with its own connection, so that the event loop stays free. */
export interface Reader {
  /**
   * Rows of each statement, all from one state of the database. Calls run one after the other; equal calls that wait
   * are run once.
   * @throws AppError QueryTooLong, TooManyQueries
   */
  read(statements: readonly ReadStatement[]): Promise<readonly ReadRow[][]>
  /** Ends the thread; a read that still runs is rejected. */
  close(): Promise<void>
}

// Source text, because the daemon ships as one bundle: a thread that loads the bundle would hold all of it a second
// time.
const thread = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require('node:sqlite')
const sql = new DatabaseSync(workerData, { readOnly: true, timeout: 2000 })
parentPort.on('message', (statements) => {
  try {
    sql.exec('BEGIN')
    const results = statements.map(({ sql: text, values }) => sql.prepare(text).all(...values))
    parentPort.postMessage({ results })
  } catch (error) {
    parentPort.postMessage({ error })
  } finally {
    if (sql.isTransaction) sql.exec('COMMIT')
  }
})
`

interface Answer {
  readonly results?: ReadRow[][]
  readonly error?: Error
}

export interface ReaderOptions {
  /** The thread ends after this time without a query; the next read starts it again, which takes about 50 ms. */
  readonly idleMs?: number
  /** Longest run of a read, and longest wait before it starts. */
  readonly limitMs?: number
  /** Most different reads that wait. */
  readonly maximumWaiting?: number
}

/** A read that waits or runs. */
interface Job extends PromiseWithResolvers<ReadRow[][]> {
  readonly statements: readonly ReadStatement[]
  readonly key: string
  timer: NodeJS.Timeout | undefined
}

/** @param sql the open database; an in-memory database is read through it, since a thread cannot see it */
export function createReader(
  sql: DatabaseSync,
  { idleMs = 60_000, limitMs = 5_000, maximumWaiting = 8 }: ReaderOptions = {},
): Reader {
  const file = sql.location()
  if (file === null) {
    return {
      read: async (statements) => statements.map(({ sql: text, values }) => sql.prepare(text).all(...values)),
      close: async () => undefined,
    }
  }

  const waiting = new Map<string, Job>()
  let running: Job | undefined
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(thread, {
      eval: true,
      name: 'reader',
      workerData: file,
      // A read that needs more memory is rejected, and the daemon continues.
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 },
    })
    let failure = new Error('the thread that reads the database has ended')
    started.on('message', (answer: Answer) => {
      settle(answer)
      started.unref()
      idle = setTimeout(() => {
        worker = undefined
        void started.terminate()
      }, idleMs).unref()
      next()
    })
    started.on('error', (error: Error) => {
      failure = error
    })
    started.on('exit', () => {
      if (worker !== started) return
      worker = undefined
      settle({ error: failure })
      next()
    })
    return started
  }

  function settle({ results, error }: Answer): void {
    clearTimeout(running?.timer)
    if (results) running?.resolve(results)
    else running?.reject(error ?? new Error('the read returned nothing'))
    running = undefined
  }

  // One thread at a time: SQLite cannot be interrupted from here, so the thread of a cancelled read ends only when
  // SQLite returns.
  let isEnding = false
  function next(): void {
    const [job] = waiting.values()
    if (running || isEnding || !job) return
    waiting.delete(job.key)
    clearTimeout(job.timer)
    clearTimeout(idle)
    running = job
    job.timer = setTimeout(() => void giveUp(job), limitMs)
    worker ??= start()
    worker.ref()
    worker.postMessage(job.statements)
  }

  async function giveUp(job: Job): Promise<void> {
    isEnding = true
    clearTimeout(idle)
    job.reject(
      new AppError(
        storeErrors.QueryTooLong,
        `the query took longer than ${limitMs / 1_000} s; narrow the filter`,
      ),
    )
    await worker?.terminate()
    isEnding = false
    next()
  }

  const refusal = () =>
    new AppError(storeErrors.TooManyQueries, 'too many queries are waiting; ask again', {
      retryAfterSec: Math.ceil(limitMs / 1_000),
    })

  return {
    read(statements) {
      const key = JSON.stringify(statements)
      // Not the running read: it does not see later commits.
      const same = waiting.get(key)
      if (same) return same.promise
      if (waiting.size >= maximumWaiting) return Promise.reject(refusal())
      const job: Job = { statements, key, timer: undefined, ...Promise.withResolvers<ReadRow[][]>() }
      waiting.set(key, job)
      job.timer = setTimeout(() => {
        waiting.delete(key)
        job.reject(refusal())
      }, limitMs)
      next()
      return job.promise
    },
    async close() {
      clearTimeout(idle)
      isEnding = true
      for (const job of waiting.values()) {
        clearTimeout(job.timer)
        job.reject(new Error('the thread that reads the database has ended'))
      }
      waiting.clear()
      await worker?.terminate()
    },
  }
}
