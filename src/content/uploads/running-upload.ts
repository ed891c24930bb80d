import type { UploadKind } from '../store/content-store.ts'

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
