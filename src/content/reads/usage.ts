import { readFile, realpath } from 'node:fs/promises'
import type { ContentUsage, UploadedContentDetails } from '../schemas.ts'
import type { Bundle } from '../store/content-store.ts'
import { mountOf, parseMounts } from '../store/mount.ts'
import type { OpenStore } from '../store/open-store.ts'

/** What the content takes of its disk. @param readUploadBytes what unfinished uploads take */
export async function readUsage(
  store: OpenStore,
  readUploadBytes: () => Promise<number>,
): Promise<ContentUsage> {
  await store.open()
  const room = await store.space.read()
  const bundles = store.index().list()
  const { bytes = 0, damagedBlobs = 0, damagedBytes = 0 } = store.totals() ?? {}
  const bundleBytes = bundles.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const mount = mountOf(
    parseMounts(await readFile('/proc/self/mountinfo', 'utf8')),
    await realpath(store.folder),
  )
  return {
    bundles: bundles.length,
    bundleBytes,
    storedBytes: bytes - damagedBytes,
    sharedBytes: bundleBytes - bytes,
    uploadBytes: await readUploadBytes(),
    damagedBlobs,
    damagedBytes,
    isComplete: store.isComplete(),
    fileSystem: {
      directory: store.folder,
      mountPoint: mount?.mountPoint ?? '',
      type: mount?.type ?? '',
      ...room,
      availableBytes: Math.max(0, room.freeBytes - room.reserveBytes - room.reservedBytes),
    },
  }
}

const mebibyte = 1_048_576

/** A published bundle in the form of the reply for the uploaded file. */
export function detailsOf(bundle: Bundle): UploadedContentDetails {
  const { via, name, fileName, fileSha256, fileSizeBytes, indexDigest, sizeBytes, publishedAt } = bundle
  const isFile = via === 'file'
  const size = isFile ? fileSizeBytes : sizeBytes
  return {
    fileName: isFile ? fileName : name,
    sha256Hash: isFile ? fileSha256 : indexDigest.slice(indexDigest.indexOf(':') + 1),
    sizeInBytes: size,
    sizeInMiB: rounded(size / mebibyte),
    sizeInGiB: rounded(size / mebibyte / 1_024),
    uploadDateTime: new Date(publishedAt).toISOString(),
  }
}

const rounded = (value: number) => Math.round(value * 100) / 100
