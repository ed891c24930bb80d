import { join } from 'node:path'
import { readJsonFile, replaceFile } from '../../system/files.ts'
import { refuseFullOf } from '../../errors/system-reason.ts'
import type { UploadKind } from '../store/content-store.ts'

/** The note in the folder of an upload: `upload.json`. */
export interface UploadNote {
  readonly kind: UploadKind
  readonly name: string
  readonly fileName: string
  /** `sha256:…` of index.json; empty for a file, whose index.json arrives with it. */
  readonly indexDigest: string
  /** Milliseconds since 1970, UTC. */
  readonly createdAt: number
  /** The boot in which its whole blobs were written or checked. */
  readonly bootId: string
  /** Fingerprint of the key that has verified the signature; empty without a key. */
  readonly signedBy: string
}

const fileOf = (folder: string) => join(folder, 'upload.json')

/**
 * Mode 0600. A kill leaves the old note or the new one. It is not synced: after a power cut an upload may begin again.
 * @throws AppError StorageFull
 */
export const writeNote = (folder: string, note: UploadNote): Promise<void> =>
  replaceFile(fileOf(folder), `${JSON.stringify(note)}\n`, 0o600, { sync: false }).catch(
    refuseFullOf(fileOf(folder)),
  )

/** `undefined` where a killed daemon or a power cut left no whole note. */
export const readNote = (folder: string): Promise<UploadNote | undefined> => readJsonFile(fileOf(folder))

/** `checking`: its manifests are examined; `publishing`: its blobs are moved into the store. */
export type UploadPhase = 'receiving' | 'checking' | 'publishing'

/** An unfinished upload of content, for lists. Times are milliseconds since 1970, UTC. */
export interface RunningUpload {
  readonly uid: string
  readonly kind: UploadKind
  readonly name: string
  readonly phase: UploadPhase
  /** Blob by blob: bytes held of its blobs, those that the store had included. Of a file: bytes received. */
  readonly receivedBytes: number
  /** Undefined for a file of unknown length. It grows while manifests arrive. */
  readonly totalBytes: number | undefined
  readonly missingBytes: number | undefined
  readonly startedAt: number
  readonly lastActivityAt: number
  /** Undefined while the pace is not known. */
  readonly remainingSeconds: number | undefined
}

/** Pace of arriving bytes, over the last half minute at most. */
export interface Pace {
  add(bytes: number): void
  /** Seconds until so many more bytes have arrived; undefined while the pace is not known. */
  secondsFor(bytes: number): number | undefined
}

const windowMs = 15_000
const leastMs = 1_000

/** @param monotonic milliseconds */
export function createPace(monotonic: () => number): Pace {
  // The window before, whole, and the one that is being filled.
  let last = { bytes: 0, ms: 0 }
  let bytes = 0
  let since = monotonic()

  function roll(): number {
    const now = monotonic()
    const ms = now - since
    if (ms < windowMs) return ms
    // After a pause the window before says nothing any more.
    last = ms < 2 * windowMs ? { bytes, ms } : { bytes: 0, ms: windowMs }
    bytes = 0
    since = now
    return 0
  }

  return {
    add(more) {
      roll()
      bytes += more
    },
    secondsFor(wanted) {
      const ms = last.ms + roll()
      const arrived = last.bytes + bytes
      return ms < leastMs || arrived === 0 ? undefined : Math.ceil((wanted * ms) / arrived / 1_000)
    },
  }
}
