import { createHash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  openSync,
  writeSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { decompress } from '../../archive/compression.ts'
import { bundleArchiveLimits as limits } from '../../archive/limits.ts'
import { createMemberNames } from '../../archive/member-names.ts'
import { refuse } from '../../archive/refusal.ts'
import { readTar } from '../../archive/tar-reader.ts'
import { bundleLimits } from '../../content/format/refusal.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { AppError } from '../../errors/app-error.ts'
import {
  type FoundBlob,
  type LayoutSource,
  describePlace,
  layoutFolderOf,
  openLayoutFolder,
  describeLayout,
  readLayout,
  type ReadLayout,
} from './layout.ts'
import type { Described, Entry, EntryPlatform } from '../../content/format/entry.ts'
import { plural, renderFacts, renderTable, type Column } from '../../ctl/layout.ts'
import { megabytes, type CommandContext, createProgress, type Progress } from '../context.ts'
import { tmpdir } from 'node:os'
import { digestOf } from '../../content/format/descriptor.ts'
import { readFileBlob, unreadable } from './part.ts'

/** A bundle file that was read whole, with every blob compared with its digest. */
interface ScannedBundle extends LayoutSource {
  /** All blobs by digest, also those that nothing names. */
  readonly blobs: ReadonlyMap<string, FoundBlob>
  /** Digests of blobs whose content differs. */
  readonly damaged: readonly string[]
}

interface ScanOptions {
  readonly file: string
  /** An empty folder for blobs that may be JSON: the documents among them are found later. */
  readonly temporary: string
  /** Called with the number of bytes of the file that were read so far. */
  readonly onRead: (bytes: number) => void
}

const blobName = /^blobs\/sha256\/([0-9a-f]{64})$/

/**
 * Reads a bundle from its beginning to its end, with constant memory.
 * @throws AppError if the archive is damaged or breaks a rule; Failure if it is an archive of another kind
 */
async function scanBundle({ file, temporary, onRead }: ScanOptions): Promise<ScannedBundle> {
  const files = new Map<string, Buffer>()
  const blobs = new Map<string, FoundBlob>()
  const damaged: string[] = []
  let isOldArchive = false
  let folder: string | undefined
  const names = createMemberNames(limits)
  const source = createReadStream(file, { highWaterMark: 1_048_576 })
  const bytes = decompress(source, limits, ({ compressedBytes }) => onRead(compressedBytes))
  for await (const { name, kind, sizeBytes, content } of explained(readTar(bytes, limits))) {
    const path = names.admit(name, kind)
    if (path === 'manifest.json' || path === 'repositories') isOldArchive = true
    if (kind !== 'file') continue
    folder ??= layoutFolderOf(path)
    if (path === 'oci-layout' || path === 'index.json') {
      if (sizeBytes > bundleLimits.indexFileBytes)
        throw refuse(
          'MemberTooLarge',
          path,
          `has ${sizeBytes} bytes; ${bundleLimits.indexFileBytes} are allowed`,
        )
      const parts: Buffer[] = []
      for await (const part of content) parts.push(part)
      files.set(path, Buffer.concat(parts))
      continue
    }
    const hex = blobName.exec(path)?.[1]
    if (hex === undefined) continue
    const kept = join(temporary, hex)
    const { sum, isKept } = await readBlob(content, sizeBytes, kept)
    const digest = `sha256:${hex}`
    if (sum !== hex) damaged.push(digest)
    blobs.set(digest, isKept ? { sizeBytes, from: { path: kept } } : { sizeBytes })
  }
  return {
    blobs,
    damaged,
    find: async (digest) => blobs.get(digest),
    async read(name) {
      const bytes = files.get(name)
      if (bytes) return bytes
      if (isOldArchive && !files.has('oci-layout')) throw notALayout()
      throw new Failure(
        'failed',
        `${file} is not a bundle: ${name} is missing ${folder === undefined ? 'in it' : describePlace(folder)}`,
      )
    },
  }

  /** Old archives of images have links, of podman and skopeo before any member that identifies them. */
  async function* explained<T>(members: AsyncGenerator<T>): AsyncGenerator<T> {
    try {
      yield* members
    } catch (error) {
      const isLink = error instanceof AppError && error.details?.reason === 'MemberKind'
      if (isLink && !files.has('oci-layout') && blobs.size === 0) throw notALayout(error)
      throw error
    }
  }

  function notALayout(cause?: unknown): Failure {
    return new Failure(
      'failed',
      `${file} is an archive of docker save or podman save, not a bundle; make one of it: edgehostctl content build --image-archive ${shellWord(file)} --output FILE`,
      { cause },
    )
  }
}

/** Hashes a blob, and keeps it if it may be a document or a configuration. */
async function readBlob(content: AsyncIterable<Buffer>, sizeBytes: number, path: string) {
  const hash = createHash('sha256')
  let file: number | undefined
  let isFirst = true
  try {
    for await (const part of content) {
      if (isFirst && sizeBytes <= bundleLimits.documentBytes && mayBeJson(part))
        file = openSync(path, 'wx', 0o600)
      isFirst = false
      hash.update(part)
      if (file !== undefined) for (let at = 0; at < part.length;) at += writeSync(file, part, at)
    }
  } finally {
    if (file !== undefined) closeSync(file)
  }
  return { sum: hash.digest('hex'), isKept: file !== undefined }
}

/** Whether JSON begins with this byte: white space or an object. */
const mayBeJson = (part: Buffer): boolean => [0x7b, 0x20, 0x09, 0x0a, 0x0d].includes(part[0] ?? 0)

/** Something about a bundle that is allowed, and that its author may not have meant. */
interface Warning {
  readonly code: 'ImageUnnamed' | 'NameTwice' | 'ArchitectureMissing' | 'BlobsUnnamed'
  readonly message: string
}

interface WarningOptions {
  readonly entries: readonly Entry[]
  /** Of all images and programs of the bundle. */
  readonly architectures: readonly string[]
  /** Blobs that nothing names. */
  readonly unnamed: { readonly count: number; readonly sizeBytes: number }
}

/** Name of an entry with tag or version, for people; its digest if it has none. */
function titleOf({ name, tag, title, version, digest }: Entry): string {
  if (name !== undefined) return tag === undefined ? name : `${name}:${tag}`
  if (title !== undefined) return version === undefined ? title : `${title} ${version}`
  return digest
}

/** Warnings for the author before the bundle is carried to a host. */
function findWarnings({ entries, architectures, unnamed }: WarningOptions): Warning[] {
  const warnings: Warning[] = []
  const digests = new Map<string, string>()
  for (const entry of entries) {
    const { kind, digest, name, title, nameProblem } = entry
    const shown = titleOf(entry)
    if (kind === 'image' && name === undefined)
      warnings.push({
        code: 'ImageUnnamed',
        message: `the image ${digest} has no name${nameProblem === undefined ? '' : ` (${nameProblem})`}; it can be pulled by its digest only. With a name: skopeo copy oci:DIR:TAG oci:OTHER-DIR:NAME:TAG`,
      })
    const key = `${name === undefined ? kind : 'image'} ${shown}`
    const other = digests.get(key)
    if (other !== undefined && other !== digest)
      warnings.push({
        code: 'NameTwice',
        message: `${shown} stands for ${other} and for ${digest}; only one of them can be pulled by this name`,
      })
    if (name !== undefined || title !== undefined) digests.set(key, digest)
    const carried = new Set(
      entry.platforms.filter(({ isCarried }) => isCarried).map((each) => each.architecture),
    )
    const missing = architectures.filter((each) => !carried.has(each))
    if ((kind === 'image' || kind === 'program') && carried.size > 0 && missing.length > 0)
      warnings.push({
        code: 'ArchitectureMissing',
        message: `${shown} is here for ${[...carried].join(', ')}, but not for ${missing.join(', ')}, for which other parts of the bundle are`,
      })
  }
  if (unnamed.count > 0)
    warnings.push({
      code: 'BlobsUnnamed',
      message: `${plural(unnamed.count, 'blob')} of ${megabytes(unnamed.sizeBytes)} ${unnamed.count === 1 ? 'is' : 'are'} named by nothing in index.json; the host does not keep them`,
    })
  return warnings
}

const columns: readonly Column<Entry>[] = [
  { title: 'KIND', read: ({ kind }) => kind },
  { title: 'NAME', read: titleOf, isFlexible: true },
  {
    title: 'PLATFORMS',
    read: ({ platforms }) => platforms.filter(isCarried).map(platformOf).join(', '),
    isFlexible: true,
  },
  {
    title: 'NOT HERE',
    read: ({ platforms }) =>
      platforms
        .filter((each) => !isCarried(each))
        .map(platformOf)
        .join(', '),
    isFlexible: true,
  },
  { title: 'SIZE', read: ({ sizeBytes }) => megabytes(sizeBytes) },
  { title: 'DIGEST', read: ({ digest }) => digest.slice(0, 'sha256:'.length + 12) },
]

/** `edgehostctl content inspect FILE|DIR`. */
export async function inspectContent(context: CommandContext, path: string): Promise<ExitName> {
  await whileOpen(context, path, (opened) => show(context, opened))
  return 'ok'
}

/**
 * The entries and the definition of a bundle or of the folder of a layout; every blob is compared with its digest.
 * @throws AppError, Failure as `content inspect`
 */
export const describeBundle = (context: CommandContext, path: string): Promise<Described> =>
  whileOpen(context, path, ({ layout }) => Promise.resolve(describeLayout(layout)))

/** Reads a bundle or the folder of a layout; its documents stay until `use` has ended. */
async function whileOpen<Value>(
  context: CommandContext,
  path: string,
  use: (opened: Shown) => Promise<Value>,
): Promise<Value> {
  const progress = createProgress('reading', context.errors)
  const temporary = mkdtempSync(join(tmpdir(), 'edgehostctl-content-'))
  context.removeOnSignal(temporary)
  try {
    const stats = statOf(path)
    const { layout, blobs } = stats.isDirectory()
      ? await openFolder(path, progress)
      : await openFile(path, { temporary, progress, sizeBytes: stats.size })
    progress.clear()
    return await use({ path, ...(stats.isFile() ? { fileBytes: stats.size } : {}), layout, blobs })
  } finally {
    progress.clear()
    rmSync(temporary, { recursive: true, force: true })
  }
}

interface Opened {
  readonly layout: ReadLayout
  /** All blobs and their sizes, also those that nothing names. */
  readonly blobs: ReadonlyMap<string, number>
}

async function openFile(
  file: string,
  { temporary, progress, sizeBytes }: { temporary: string; progress: Progress; sizeBytes: number },
): Promise<Opened> {
  const scanned = await scanBundle({
    file,
    temporary,
    onRead: (bytes) => progress.report(bytes, sizeBytes),
  })
  refuseDamaged(file, scanned.damaged)
  const blobs = new Map([...scanned.blobs].map(([digest, blob]) => [digest, blob.sizeBytes]))
  return { layout: await readLayout(scanned), blobs }
}

async function openFolder(folder: string, progress: Progress): Promise<Opened> {
  const layout = await readLayout(openLayoutFolder(folder, folder))
  const total = [...layout.held.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const damaged: string[] = []
  let done = 0
  for (const [digest, { from }] of layout.held) {
    if (from === undefined) continue
    const onRead = (bytes: number) => {
      done += bytes
      progress.report(done, total)
    }
    const found = await readFileBlob({ ...from, place: `${folder}, ${digest}`, onRead })
    if (found.digest !== digest) damaged.push(digest)
  }
  refuseDamaged(folder, damaged)
  const blobs = new Map([...layout.held].map(([digest, { sizeBytes }]) => [digest, sizeBytes]))
  for (const name of readdirSync(join(folder, 'blobs/sha256')))
    if (/^[0-9a-f]{64}$/.test(name) && !blobs.has(`sha256:${name}`))
      blobs.set(`sha256:${name}`, statSync(join(folder, 'blobs/sha256', name)).size)
  return { layout, blobs }
}

const shownDamaged = 10

function refuseDamaged(path: string, damaged: readonly string[]): void {
  if (damaged.length === 0) return
  const more = damaged.length > shownDamaged ? `\nand ${damaged.length - shownDamaged} more` : ''
  throw new Failure(
    'failed',
    `${path} is damaged: the content of ${plural(damaged.length, 'blob')} does not have the digest by which it is named; copy or build it again:\n${damaged.slice(0, shownDamaged).join('\n')}${more}`,
  )
}

interface Shown extends Opened {
  readonly path: string
  readonly fileBytes?: number
}

async function show({ output }: CommandContext, { path, fileBytes, layout, blobs }: Shown): Promise<void> {
  const { index, held } = layout
  const { entries, architectures, definition } = describeLayout(layout)
  const sizeBytes = [...held.values()].reduce((sum, blob) => sum + blob.sizeBytes, 0)
  const sharedBytes = sumOf(entries) - sizeBytes
  const unnamed = [...blobs].filter(([digest]) => !held.has(digest))
  const warnings = findWarnings({
    entries,
    architectures,
    unnamed: { count: unnamed.length, sizeBytes: unnamed.reduce((sum, [, size]) => sum + size, 0) },
  })
  const whole = {
    path,
    ...(fileBytes === undefined ? {} : { fileBytes }),
    indexDigest: digestOf(index),
    blobCount: held.size,
    sizeBytes,
    sharedBytes,
    architectures,
    ...(definition === undefined ? {} : { definition }),
    entries,
    warnings,
  }
  await output.show(whole, (paper) => {
    const facts = renderFacts(
      [
        { label: fileBytes === undefined ? 'Folder' : 'File', lines: [path] },
        { label: 'Identity', lines: [whole.indexDigest] },
        { label: 'Holds', lines: [describeKinds(entries)] },
        { label: 'Blobs', lines: [`${plural(held.size, 'blob')} of ${megabytes(sizeBytes)}`] },
        {
          label: 'Shared',
          lines: [`${megabytes(sharedBytes)}, which several entries name and the bundle has once`],
        },
        ...(fileBytes === undefined ? [] : [{ label: 'Size', lines: [megabytes(fileBytes)] }]),
        { label: 'Architectures', lines: [architectures.join(', ') || '-'] },
        ...(definition
          ? [{ label: 'Definition', lines: [`${definition.digest}, ${megabytes(definition.sizeBytes)}`] }]
          : []),
      ],
      paper,
    )
    return `${facts}\n${renderTable(entries, columns, paper.columns)}`
  })
  if (output.format === 'table') for (const { message } of warnings) output.note(`warning: ${message}`)
}

const sumOf = (entries: readonly Entry[]): number => {
  const byDigest = new Map(entries.map(({ digest, sizeBytes }) => [digest, sizeBytes]))
  return [...byDigest.values()].reduce((sum, size) => sum + size, 0)
}

const isCarried = (platform: EntryPlatform): boolean => platform.isCarried

const platformOf = ({ os, architecture, variant }: EntryPlatform): string =>
  `${os}/${architecture}${variant === undefined ? '' : `/${variant}`}`

/** `3 images, 1 chart`. */
function describeKinds(entries: readonly Entry[]): string {
  const counts = new Map<string, number>()
  for (const { kind } of entries) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts].map(([kind, count]) => plural(count, kind)).join(', ')
}

function statOf(path: string) {
  try {
    const stats = statSync(path)
    if (!stats.isFile() && !stats.isDirectory()) throw new Error('it is neither a file nor a folder')
    return stats
  } catch (error) {
    throw unreadable(path, error)
  }
}
