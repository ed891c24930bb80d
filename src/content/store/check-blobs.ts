import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../system/clock.ts'
import { replaceFile } from '../../system/files.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentProgram } from '../program/content-program.ts'
import { hexOf, missing } from './folder.ts'
import type { OpenStore } from './open-store.ts'

/** Progress of the blob check. Kept in a file of the content, so that a restart does not begin a new round. */
interface Round {
  /** Milliseconds since 1970. */
  readonly begunAt: number
  readonly readBytes: number
  /** The last blob that was read; empty at the start. Blobs are read in the order of their digests. */
  readonly afterHex: string
}

export interface BlobCheck {
  /** Reads the blobs that are due now, and sets damaged ones aside. */
  run(signal: AbortSignal): Promise<void>
  /** Bytes read since the start of the daemon. */
  readBytes(): number
}

export interface BlobCheckOptions {
  readonly store: OpenStore
  readonly program: Pick<ContentProgram, 'verify'>
  readonly settings: ContentSettings['check']
  readonly clock: Pick<Clock, 'now'>
}

const dayMs = 86_400_000
// A run that reads at the highest rate takes this long, or one blob.
const runSeconds = 300
const mostBlobs = 2_000

/**
 * Reads all blobs in a round of `days`, some at each run: as much as is due, so that a host that was off catches up, but never faster
 * than `bytesPerSecond`.
 */
export function createBlobCheck({ store, program, settings, clock }: BlobCheckOptions): BlobCheck {
  let readBytes = 0
  const file = join(store.folder, 'check.json')
  const periodMs = settings.days * dayMs

  async function readRound(now: number): Promise<Round> {
    const fresh = { begunAt: now, readBytes: 0, afterHex: '' }
    const text = await readFile(file, 'utf8').catch(missing)
    const round = text === undefined ? fresh : parse(text)
    // The clock was set back.
    return round && round.begunAt <= now ? round : fresh
  }

  async function run(signal: AbortSignal): Promise<void> {
    await store.open()
    const now = clock.now()
    let round = await readRound(now)
    const elapsedMs = now - round.begunAt
    const { bytes = 0 } = store.totals() ?? {}
    const mostBytes = settings.bytesPerSecond * runSeconds
    // At the end of the period all that is left is due: bundles may have been published or deleted meanwhile.
    const dueBytes =
      elapsedMs >= periodMs
        ? mostBytes
        : Math.min((bytes * elapsedMs) / periodMs - round.readBytes, mostBytes)
    const isFirst = round.afterHex === '' && round.readBytes === 0
    const some = dueBytes > 0 || isFirst ? takeDue(store, round.afterHex, dueBytes) : []
    const last = some.at(-1)
    if (last) {
      const digests = some.map(({ hex }) => `sha256:${hex}`)
      const found = await program.verify(
        { blobs: store.blobs, digests, bytesPerSecond: settings.bytesPerSecond },
        { signal },
      )
      readBytes += found.sizeBytes
      if (found.damaged.length > 0) await store.setAside(found.damaged.map(hexOf))
      const sizeBytes = some.reduce((sum, blob) => sum + blob.sizeBytes, 0)
      round = { ...round, afterHex: last.hex, readBytes: round.readBytes + sizeBytes }
    } else if (elapsedMs >= periodMs) round = { begunAt: now, readBytes: 0, afterHex: '' }
    else if (!isFirst) return
    await replaceFile(file, `${JSON.stringify(round)}\n`, 0o600)
  }

  return { run, readBytes: () => readBytes }
}

/** The next blobs, at least one, until they have that many bytes. */
function takeDue(store: OpenStore, afterHex: string, bytes: number) {
  let sum = 0
  return store
    .index()
    .wholeBlobsAfter(afterHex, mostBlobs)
    .filter(({ sizeBytes }, at) => {
      const isDue = at === 0 || sum < bytes
      sum += sizeBytes
      return isDue
    })
}

function parse(text: string): Round | undefined {
  try {
    return JSON.parse(text) as Round
  } catch {
    return undefined
  }
}
