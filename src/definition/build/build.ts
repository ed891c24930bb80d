import { createHash } from 'node:crypto'
import { stat, type FileHandle } from 'node:fs/promises'
import { withFile } from '../../errors/system-reason.ts'
import { placeFile } from '../../system/place-file.ts'
import { tarEnd, tarPadding } from '../../archive/ustar.ts'
import { decompress } from '../../archive/compression.ts'
import { defaultLimits as limits } from '../../archive/limits.ts'
import { createBlockWriter, type BlockWriter, createFrameSink, createGzipSink } from '../../archive/sinks.ts'
import type { BuildPlan, PlannedMember } from './build-plan.ts'
import { definitionFile, formatDefinitionFile } from '../format/definition-file.ts'
import { formatVersion } from '../format/format.ts'
import { packFile } from '../../archive/pack-file.ts'
import { memberHeader } from '../../archive/tar-member.ts'

export interface BuildOptions {
  readonly plan: BuildPlan
  /** Ends in .tgz, .tar.gz or .tar.zst. */
  readonly file: string
  readonly name?: string | undefined
  readonly version?: string | undefined
  /** Called with the temporary path under which the archive is written. */
  readonly onBegin?: (temporary: string) => void
  /** Called with the bytes packed so far and the bytes of all members. */
  readonly onProgress?: (done: number, total: number) => void
}

/** A finished archive. */
export interface Built {
  readonly file: string
  readonly name: string
  readonly version: string
  readonly sizeBytes: number
  readonly memberCount: number
  /** Bytes of all members, unpacked. */
  readonly contentBytes: number
}

/** Whether a file name ends in an extension that names the compression. */
export const isArchiveName = (file: string): boolean => /\.(?:tgz|tar\.gz|tar\.zst)$/.test(file)

/**
 * Writes an archive to a temporary file beside its path and renames it when it is complete and on the disk. The same files
 * give the same bytes with the same version of this program: sorted names, one owner, mode and time. Files are read once,
 * and hashed while they are packed; so definition.yaml, which contains the sums, is the last member.
 * @throws Error if a file changes meanwhile; AppError if the reader would refuse the compression ratio; the system's errors
 *   as they are
 */
export async function buildArchive({
  plan,
  file,
  onBegin = () => undefined,
  onProgress,
  ...title
}: BuildOptions): Promise<Built> {
  const name = title.name ?? plan.title.name
  const version = title.version ?? plan.title.version
  const { description } = plan.title
  const contentBytes = plan.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const pack = async (writer: BlockWriter): Promise<void> => {
    const sums = new Map<string, string>()
    let done = 0
    for (const member of plan.members) {
      await writer.put(memberHeader(member.name, member.sizeBytes))
      sums.set(member.name, await packContent(member, writer))
      await writer.put(tarPadding(member.sizeBytes))
      done += member.sizeBytes
      onProgress?.(done, contentBytes)
    }
    const profiles = [...plan.profiles]
    const head = Buffer.from(
      formatDefinitionFile({ formatVersion, name, version, description, profiles, sums }),
    )
    await writer.put(memberHeader(definitionFile, head.length))
    await writer.put(head)
    await writer.put(Buffer.concat([tarPadding(head.length), tarEnd()]))
    await writer.end()
  }
  await placeFile({
    // Readable as the umask allows: the daemon that reads it may run as another user.
    path: file,
    mode: 0o666,
    onBegin,
    async write(handle) {
      const writer = createBlockWriter(
        file.endsWith('.zst') ? createFrameSink(handle) : createGzipSink(handle),
      )
      try {
        await pack(writer)
      } catch (error) {
        await writer.abandon()
        throw error
      }
      if (contentBytes > limits.ratioFreeBytes) await unpackAll(handle)
    },
  }).catch(withFile(file))
  const { size: sizeBytes } = await stat(file)
  return { file, name, version, sizeBytes, memberCount: plan.members.length + 1, contentBytes }
}

/** Checks the compression ratio, which is known only now: a reader refuses an archive of which any part looks like a bomb. */
async function unpackAll(file: FileHandle): Promise<void> {
  const source = file.createReadStream({ start: 0, autoClose: false, highWaterMark: 262_144 })
  const unpacked = decompress(source, limits)
  while (!(await unpacked.next()).done);
}

/** @returns SHA-256 of the content */
async function packContent({ name, from, sizeBytes }: PlannedMember, writer: BlockWriter): Promise<string> {
  if (typeof from === 'string') return packFile({ path: from, sizeBytes, name, writer })
  await writer.put(from)
  return createHash('sha256').update(from).digest('hex')
}
