import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOf } from '../../content/format/descriptor.ts'
import { type Entry, type EntryPlatform } from '../../content/format/entry.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { plural } from '../../ctl/text.ts'
import type { CommandContext } from '../command-context.ts'
import { megabytes } from '../contents.ts'
import { createProgress, type Progress } from '../progress.ts'
import { readFileBlob, unreadable } from './file-blob.ts'
import { openLayoutFolder } from './layout-folder.ts'
import { describeLayout, readLayout, type ReadLayout } from './layout.ts'
import { scanBundle } from './scan.ts'
import { findWarnings, titleOf } from './warnings.ts'

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
  const progress = createProgress('reading', context.errors)
  const temporary = mkdtempSync(join(tmpdir(), 'edgehostctl-content-'))
  context.removeOnSignal(temporary)
  try {
    const stats = statOf(path)
    const { layout, blobs } = stats.isDirectory()
      ? await openFolder(path, progress)
      : await openFile(path, { temporary, progress, sizeBytes: stats.size })
    await show(context, { path, ...(stats.isFile() ? { fileBytes: stats.size } : {}), layout, blobs })
    return 'ok'
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
    ...{ file, temporary },
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
    ...{ entries, architectures },
    unnamed: { count: unnamed.length, sizeBytes: unnamed.reduce((sum, [, size]) => sum + size, 0) },
  })
  const whole = {
    path,
    ...(fileBytes === undefined ? {} : { fileBytes }),
    indexDigest: digestOf(index),
    blobCount: held.size,
    ...{ sizeBytes, sharedBytes, architectures },
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
