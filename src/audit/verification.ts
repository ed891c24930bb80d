import { setImmediate as breathe } from 'node:timers/promises'
import { emptyHead, hashOf, isSameHash, type AuditHead, type AuditRecord } from './record.ts'
import type { TrailStore } from './trail-store.ts'

/** The result of a verification. */
export interface Verification {
  readonly isIntact: boolean
  /** Number of verified records. */
  readonly count: number
  /** Number of the oldest verified record; 0 for an empty trail. */
  readonly first: number
  /** The newest verified record. */
  readonly head: AuditHead
  /** The first problem found. */
  readonly problem?: { readonly seq: number; readonly message: string }
}

export interface VerificationOptions {
  readonly store: TrailStore
  /** The daemon's own head from memory: the chain must reach it and contain it. */
  readonly head: AuditHead
  /** A head that was kept elsewhere and that the chain must contain. */
  readonly expected?: AuditHead
  /** The last record to verify, if it is not the head. */
  readonly upTo?: number
}

/** A record whose hash the caller knows. */
interface Expectation {
  readonly head: AuditHead
  readonly message: string
}

// Read and hashed in one or two milliseconds, so that a machine five times slower needs less than ten.
const sliceLength = 25

/**
 * Verifies every record: its hash, the hash of the previous record, the numbers, the checkpoint of retention, the known
 * heads, and that the end is complete. It works in slices and yields to the event loop between them.
 */
export async function verifyTrail(options: VerificationOptions): Promise<Verification> {
  const { store, head, expected } = options
  const first = store.first()
  const lastSeq = options.upTo ?? Math.max(head.seq, store.checkpoint()?.seq ?? 0)
  const known: Expectation[] = [
    { head, message: 'the record is not the one that the daemon wrote' },
    ...(expected ? [{ head: expected, message: 'the record is not the one whose hash was given' }] : []),
  ]
  const compared = new Set<AuditHead>()
  let last: AuditHead | undefined
  let count = 0
  let problem: Verification['problem']

  for (let next = first; next <= lastSeq && problem === undefined;) {
    const records = store.slice(next, sliceLength)
    // Read for each slice: retention may be running.
    const begin = readBegin(store)
    if (begin === undefined) {
      problem = { seq: store.checkpoint()?.seq ?? 0, message: 'the record of the checkpoint is missing' }
      break
    }
    for (const record of records) {
      const message = judge(record, last, begin) ?? contradict(record, known, compared)
      if (message !== undefined) {
        problem = { seq: record.seq, message }
        break
      }
      count += 1
      last = { seq: record.seq, hash: record.hash }
    }
    if (records.length < sliceLength) break
    next = (records.at(-1)?.seq ?? lastSeq) + 1
    await breathe()
  }
  if (problem === undefined && (last?.seq ?? 0) < Math.max(lastSeq, expected?.seq ?? 0))
    problem = { seq: (last?.seq ?? 0) + 1, message: 'records were removed from the end' }
  if (problem === undefined && expected && !compared.has(expected))
    problem = compareRemoved(expected, readBegin(store) ?? emptyHead)
  const found = { count, first: count > 0 ? first : 0, head: last ?? emptyHead }
  return problem === undefined ? { isIntact: true, ...found } : { isIntact: false, ...found, problem }
}

/** Start of the chain: the last removed record, as its checkpoint in the chain documents. */
function readBegin(store: TrailStore): AuditHead | undefined {
  const checkpoint = store.checkpoint()
  if (!checkpoint) return emptyHead
  const record = store.read(checkpoint.seq)
  if (record?.kind !== 'checkpoint' || record.resourceName !== String(checkpoint.removedTo)) return undefined
  return { seq: checkpoint.removedTo, hash: Buffer.from(record.resourceUid, 'hex') }
}

/** The problem of a record, if any. */
function judge(record: AuditRecord, last: AuditHead | undefined, begin: AuditHead): string | undefined {
  // Retention may remove the records before the beginning at any moment.
  if (record.seq !== (last?.seq ?? begin.seq) + 1 && record.seq > begin.seq + 1)
    return 'records before this one are missing'
  const isBehind = (head: AuditHead) => record.seq === head.seq + 1
  const before = [begin, ...(last ? [last] : [])].filter(isBehind)
  if (before.some(({ hash }) => !isSameHash(hash, record.previousHash)))
    return 'the record does not match the previous one'
  if (!isSameHash(hashOf(record), record.hash)) return 'the record was altered'
  return undefined
}

/** Compares a record with the known hashes. */
function contradict(
  record: AuditRecord,
  known: readonly Expectation[],
  compared: Set<AuditHead>,
): string | undefined {
  const same = known.filter(({ head }) => head.seq === record.seq)
  for (const { head } of same) compared.add(head)
  return same.find(({ head }) => !isSameHash(head.hash, record.hash))?.message
}

/** Checks an expected record that was removed: the checkpoint has only the hash of the last removed record. */
function compareRemoved(expected: AuditHead, begin: AuditHead): Verification['problem'] {
  const { seq } = expected
  if (seq < begin.seq) return { seq, message: 'the record was removed by retention and cannot be compared' }
  if (isSameHash(expected.hash, begin.hash)) return undefined
  return { seq, message: 'the record that retention removed is not the one whose hash was given' }
}
