import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { BundleSource } from './source.ts'
import { tarMembers, type TarInput } from './tar-members.ts'

const readBytes = 262_144
const blobName = /^blobs\/sha256\/([0-9a-f]{64})$/

/** The digest of a member that is a blob. */
export function digestOfMember(name: string): string | undefined {
  const [, hex] = blobName.exec(name) ?? []
  return hex === undefined ? undefined : `sha256:${hex}`
}

/**
 * A bundle as a tar file that is not compressed: its members are listed once, and read where they lie.
 * @returns undefined if it has no index.json
 * @throws NotTar
 */
export async function openTar(
  file: string,
  handle: FileHandle,
  name: string,
): Promise<BundleSource | undefined> {
  const members = new Map<string, { readonly at: number; readonly sizeBytes: number }>()
  const input = inputOf(handle)
  let index: Buffer | undefined
  for await (const { name: member, sizeBytes } of tarMembers(input)) {
    const digest = digestOfMember(member)
    if (digest !== undefined) members.set(digest, { at: input.position(), sizeBytes })
    if (member === 'index.json') index = await input.read(sizeBytes)
  }
  if (!index) return undefined
  return {
    index,
    name,
    isInOrder: false,
    mayHave: (digest) => members.has(digest),
    async *blobs(wanted) {
      // In the order of the file, which a disk reads faster.
      for (const [digest, { at, sizeBytes }] of members)
        if (wanted.has(digest))
          yield {
            digest,
            sizeBytes,
            // `end` is included.
            open: (offset) =>
              createReadStream(file, {
                start: at + offset,
                end: at + sizeBytes - 1,
                highWaterMark: readBytes,
              }),
          }
    },
    close: () => handle.close(),
  }
}

/** Reads only headers from the disk. */
function inputOf(handle: FileHandle): TarInput {
  let at = 0
  return {
    position: () => at,
    async read(bytes) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(bytes), 0, bytes, at)
      at += bytesRead
      return buffer.subarray(0, bytesRead)
    },
    async skip(bytes) {
      at += bytes
    },
  }
}
