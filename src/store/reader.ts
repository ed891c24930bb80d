import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { Worker } from 'node:worker_threads'

export interface ReadStatement {
  readonly sql: string
  /** For its `?`. */
  readonly values: readonly SQLInputValue[]
}

export type ReadRow = Readonly<Record<string, SQLOutputValue>>

/** Reads that may take long, in a thread with a connection of its own, so that the event loop goes on. */
export interface Reader {
  /** Rows of each statement, all from one state of the database. One call is read after the other. */
  read(statements: readonly ReadStatement[]): Promise<readonly ReadRow[][]>
  /** Ends the thread; what is still being read is refused. */
  close(): Promise<void>
}

// Text, since what ships is one bundle: a thread that loaded that would hold all of it a second time.
const thread = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require('node:sqlite')
const sql = new DatabaseSync(workerData, { readOnly: true, timeout: 2000 })
parentPort.on('message', ({ id, statements }) => {
  try {
    sql.exec('BEGIN')
    const results = statements.map(({ sql: text, values }) => sql.prepare(text).all(...values))
    parentPort.postMessage({ id, results })
  } catch (error) {
    parentPort.postMessage({ id, error })
  } finally {
    if (sql.isTransaction) sql.exec('COMMIT')
  }
})
`

interface Answer {
  readonly id: number
  readonly results?: ReadRow[][]
  readonly error?: Error
}

export interface ReaderOptions {
  /** The thread is ended when nobody has asked for so long; the next read starts it anew, in some 50 ms. */
  readonly idleMs?: number
}

/** @param sql the open database; one that is in memory is read through it, since no thread can see that */
export function createReader(sql: DatabaseSync, { idleMs = 60_000 }: ReaderOptions = {}): Reader {
  const file = sql.location()
  if (file === null) {
    return {
      read: async (statements) => statements.map(({ sql: text, values }) => sql.prepare(text).all(...values)),
      close: async () => undefined,
    }
  }

  interface Waiting {
    resolve(results: ReadRow[][]): void
    reject(error: Error): void
  }
  let running: { worker: Worker; waiting: Map<number, Waiting> } | undefined
  let idle: NodeJS.Timeout | undefined
  let lastId = 0

  function start() {
    const worker = new Worker(thread, {
      eval: true,
      name: 'reader',
      workerData: file,
      // A read that wants more is refused, and the daemon goes on.
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 },
    })
    const waiting = new Map<number, Waiting>()
    const started = { worker, waiting }
    let failure = new Error('the thread that reads the database has ended')
    worker.on('message', ({ id, results, error }: Answer) => {
      const asked = waiting.get(id)
      waiting.delete(id)
      if (results) asked?.resolve(results)
      else asked?.reject(error ?? failure)
      if (waiting.size > 0) return
      worker.unref()
      idle = setTimeout(() => void end(started), idleMs).unref()
    })
    worker.on('error', (error: Error) => {
      failure = error
    })
    worker.on('exit', () => {
      if (running === started) running = undefined
      for (const asked of waiting.values()) asked.reject(failure)
    })
    return started
  }

  async function end(started: typeof running): Promise<void> {
    if (running === started) running = undefined
    await started?.worker.terminate()
  }

  return {
    read(statements) {
      clearTimeout(idle)
      running ??= start()
      const { worker, waiting } = running
      worker.ref()
      lastId += 1
      const id = lastId
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, statements })
      })
    },
    close() {
      clearTimeout(idle)
      return end(running)
    },
  }
}
