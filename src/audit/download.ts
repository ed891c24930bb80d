import { Readable } from 'node:stream'
import { setImmediate as breathe } from 'node:timers/promises'
import { tarEnd, tarHeader, tarPadding } from '../archive/ustar.ts'
import { hex, type AuditRecord } from './record.ts'
import type { TrailStore } from './trail-store.ts'

// The size of a member precedes its content: this many records are held in memory at a time.
const memberLength = 1_000
// Read and serialized in a millisecond, so that a small board needs less than ten.
const sliceLength = 25

/**
 * The whole trail, oldest first, as a tar archive of NDJSON files. It is created while it is read: a slow client costs
 * the memory of one slice and no file. Each line has both hashes, so that the chain can be verified without this host.
 * @param head number of the newest record to include
 */
export function downloadTrail(store: TrailStore, head: number): Readable {
  return Readable.from(members(store, head), { objectMode: false })
}

async function* members(store: TrailStore, head: number): AsyncGenerator<Buffer> {
  for (let next = store.first(); next <= head;) {
    const { oldest, newest, content } = await readMember(store, next, head)
    if (!oldest || !newest) break
    yield tarHeader(`audit/${number(oldest.seq)}-${number(newest.seq)}.ndjson`, content.length, newest.at)
    yield content
    yield tarPadding(content.length)
    next = newest.seq + 1
  }
  yield tarEnd()
}

async function readMember(store: TrailStore, from: number, head: number) {
  const lines: Buffer[] = []
  let oldest: AuditRecord | undefined
  let newest: AuditRecord | undefined
  for (let count = 0; count < memberLength; count += sliceLength) {
    const records = store.slice((newest?.seq ?? from - 1) + 1, sliceLength).filter(({ seq }) => seq <= head)
    oldest ??= records[0]
    newest = records.at(-1) ?? newest
    lines.push(Buffer.from(records.map((record) => `${JSON.stringify(lineOf(record))}\n`).join('')))
    if (records.length < sliceLength) break
    await breathe()
  }
  return { oldest, newest, content: Buffer.concat(lines) }
}

// Padded, so that the order by name is the order by time.
const number = (seq: number) => String(seq).padStart(10, '0')

const lineOf = ({ previousHash, hash, at, actorUid, projectUid, ...record }: AuditRecord) => ({
  ...record,
  // Of the platform only; a line of a host is as it always was.
  ...(actorUid && { actorUid }),
  ...(projectUid && { projectUid }),
  at: new Date(at).toISOString(),
  previousHash: hex(previousHash),
  hash: hex(hash),
})
