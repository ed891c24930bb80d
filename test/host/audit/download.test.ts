import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createWriteStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { downloadTrail } from '../../../src/audit/audit.ts'
import { hashOf, hex, type AuditRecord } from '../../../src/audit/record.ts'
import { createTrailStore, type TrailStore } from '../../../src/audit/trail-store.ts'
import { systemEntry } from '../../../src/audit/own-entries.ts'
import { createTrail } from '../../../src/audit/trail.ts'
import { openDatabase, type Database } from '../../support/open-database.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

let folder: string
let database: Database
let store: TrailStore
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-download-'))
  const { log } = captureLog()
  database = openDatabase(':memory:', log)
  store = createTrailStore(database)
  const trail = createTrail({ store, database, clock: createTurningClock(), log })
  for (let number = 1; number <= 1_203; number += 1)
    trail.append(systemEntry({ action: 'action', kind: 'test', message: `Nummer ${number} ü` }))
})
afterEach(async () => {
  database.close()
  await rm(folder, { recursive: true })
})

const lineCount = (text: string) => text.trimEnd().split('\n').length

it('tar unpacks the download into lines whose chain can be verified without the host', async () => {
  const archive = join(folder, 'audit.tar')
  await pipeline(downloadTrail(store, 1_203), createWriteStream(archive))
  await promisify(execFile)('tar', ['-xf', archive, '-C', folder])
  const names = (await readdir(join(folder, 'audit'))).sort()
  expect(names).toEqual(['0000000001-0000001000.ndjson', '0000001001-0000001203.ndjson'])
  const texts = await Promise.all(names.map((name) => readFile(join(folder, 'audit', name), 'utf8')))
  expect(texts.map(lineCount)).toEqual([1_000, 203])
  let previous = '0'.repeat(64)
  for (const line of texts.join('').trimEnd().split('\n')) {
    const { at, previousHash, hash, ...rest } = JSON.parse(line) as Record<string, string>
    // A line without uids is one of a host; an absent uid is an empty one.
    const uids = { actorUid: '', projectUid: '' }
    const record = { ...uids, ...rest, at: Date.parse(at!), previousHash: Buffer.from(previousHash!, 'hex') }
    expect(previousHash).toBe(previous)
    expect(hex(hashOf(record as unknown as AuditRecord))).toBe(hash)
    previous = hash!
  }
  expect(previous).toBe(hex(store.head().hash))
})

it('a download is read only as fast as the client accepts it', async () => {
  let slices = 0
  const counted = {
    ...store,
    slice(from: number, limit: number) {
      slices += 1
      return store.slice(from, limit)
    },
  }
  const stream = downloadTrail(counted, 1_203)
  const iterator = stream[Symbol.asyncIterator]()
  await iterator.next()
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(slices).toBe(1_000 / 25)
  for await (const _chunk of { [Symbol.asyncIterator]: () => iterator }) expect(_chunk).toBeDefined()
  expect(slices).toBe(1_000 / 25 + Math.ceil(203 / 25))
})

it('a download contains nothing that was added after it began', async () => {
  const chunks = await downloadTrail(store, 10).toArray()
  expect(lineCount(Buffer.concat(chunks.slice(1, 2) as Buffer[]).toString())).toBe(10)
})
