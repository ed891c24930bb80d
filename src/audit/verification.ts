import { setImmediate as breathe } from 'node:timers/promises'
import { emptyHead, hashOf, isSameHash, type AuditHead, type AuditRecord } from './record.ts'
import type { TrailStore } from './trail-store.ts'

/** What a verification found. */
export interface Verification {
  readonly isIntact: boolean
  /** Records looked at. */
  readonly count: number
  /** Number of the oldest of them; 0 for an empty trail. */
  readonly first: number
  /** The newest of them. */
  readonly head: AuditHead
  /** The first thing that is wrong. */
  readonly problem?: { readonly seq: number; readonly message: string }
}

export interface VerificationOptions {
  readonly store: TrailStore
  /** The daemon's own, of its memory: so far the chain must reach, and with this record. */
  readonly head: AuditHead
  /** One that was kept elsewhere and must be in the chain. */
  readonly expected?: AuditHead
  /** The last record to look at, where it is not the head. */
  readonly upTo?: number
}

/** A record whose hash the caller knows. */
interface Expectation {
  readonly head: AuditHead
  readonly message: string
}

// Read and hashed in one or two milliseconds, so that a machine five times slower is under ten.
const sliceLength = 25

/**
 * Looks at every record: its own hash, the hash of the one before, the numbers, the checkpoint that retention left,
 * the heads that are known, and that nothing was cut off the end. In slices; between them the event loop turns.
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
    // Each time: retention may be at work.
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

/** Where the chain begins: the last record that was taken away, as its checkpoint in the chain says. */
function readBegin(store: TrailStore): AuditHead | undefined {
  const checkpoint = store.checkpoint()
  if (!checkpoint) return emptyHead
  const record = store.read(checkpoint.seq)
  if (record?.kind !== 'checkpoint' || record.resourceName !== String(checkpoint.removedTo)) return undefined
  return { seq: checkpoint.removedTo, hash: Buffer.from(record.resourceUid, 'hex') }
}

/** What is wrong with a record, if anything. */
function judge(record: AuditRecord, last: AuditHead | undefined, begin: AuditHead): string | undefined {
  // Those before the begin may go at any moment.
  if (record.seq !== (last?.seq ?? begin.seq) + 1 && record.seq > begin.seq + 1)
    return 'records before this one are missing'
  const isBehind = (head: AuditHead) => record.seq === head.seq + 1
  const before = [begin, ...(last ? [last] : [])].filter(isBehind)
  if (before.some(({ hash }) => !isSameHash(hash, record.previousHash)))
    return 'the record does not follow the one before'
  if (!isSameHash(hashOf(record), record.hash)) return 'the record was altered'
  return undefined
}

/** What of a record is not as it is known. */
function contradict(
  record: AuditRecord,
  known: readonly Expectation[],
  compared: Set<AuditHead>,
): string | undefined {
  const same = known.filter(({ head }) => head.seq === record.seq)
  for (const { head } of same) compared.add(head)
  return same.find(({ head }) => !isSameHash(head.hash, record.hash))?.message
}

/** A record that is gone: the checkpoint holds the hash of the last of them, and of no other. */
function compareRemoved(expected: AuditHead, begin: AuditHead): Verification['problem'] {
  const { seq } = expected
  if (seq < begin.seq) return { seq, message: 'the record was removed by retention and cannot be compared' }
  if (isSameHash(expected.hash, begin.hash)) return undefined
  return { seq, message: 'the record that retention removed is not the one whose hash was given' }
}
