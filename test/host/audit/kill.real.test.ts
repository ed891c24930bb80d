import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTrailStore } from '../../../src/audit/trail-store.ts'
import { createTrail } from '../../../src/audit/trail.ts'
import { verifyTrail } from '../../../src/audit/verification.ts'
import { openDatabase } from '../../support/open-database.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-kill-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** Uids that were returned before the kill. */
async function floodAndKill(file: string, atLeast: number): Promise<string[]> {
  const program = join(import.meta.dirname, '../../support/audit-flooder.ts')
  const child = spawn(process.execPath, [program, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the flooder ended with ${code}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.split('\n').length > atLeast) resolve()
    })
  })
  const gone = once(child, 'close')
  child.kill('SIGKILL')
  await gone
  return output.slice(0, output.lastIndexOf('\n')).split('\n')
}

it('after kill -9 during a flood, every uid that was replied has its record', async () => {
  const file = join(folder, 'edgehostd.db')
  for (let round = 1; round <= 3; round += 1) {
    const uids = await floodAndKill(file, 200)
    const { log } = captureLog()
    const database = openDatabase(file, log)
    const store = createTrailStore(database)
    const trail = createTrail({ store, database, clock: systemClock, log })
    const records = store.slice(1, 1_000)
    const known = new Set(records.map(({ uid }) => uid))
    expect(uids.filter((uid) => !known.has(uid))).toEqual([])
    expect(records.filter(({ outcome }) => outcome === 'unknown')).toHaveLength(round)
    expect(records.at(-1)?.message).toBe('an unknown number of more requests without a session were refused')
    expect(await verifyTrail({ store, head: trail.head() })).toMatchObject({ isIntact: true })
    database.close()
  }
})
