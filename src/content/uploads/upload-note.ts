import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuseFull } from '../../errors/storage-full.ts'
import type { UploadKind } from '../store/content-store.ts'

/** What the folder of an upload says of it: `upload.json`. */
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
export async function writeNote(folder: string, note: UploadNote): Promise<void> {
  const file = fileOf(folder)
  const temporary = `${file}.new`
  await writeFile(temporary, `${JSON.stringify(note)}\n`, { mode: 0o600 }).catch(refuseFull)
  await rename(temporary, file).catch(refuseFull)
}

/** `undefined` where a killed daemon or a power cut left no whole note. */
export async function readNote(folder: string): Promise<UploadNote | undefined> {
  try {
    return JSON.parse(await readFile(fileOf(folder), 'utf8')) as UploadNote
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
