import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { shellWord } from '../../base/printable.ts'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { oneLine, plural } from '../../ctl/text.ts'
import { megabytes } from '../contents.ts'
import type { CommandContext } from '../command-context.ts'
import { createProgress } from '../progress.ts'
import { collectParts, inputFiles, type ContentRequest } from './collect-parts.ts'
import { planBundle } from './plan.ts'
import { splitPrograms } from './programs-part.ts'
import { identityOf, isBundleName, unwritable, writeBundle } from './write.ts'

/** `edgehostctl content build`. */
export async function buildContent(context: CommandContext, request: ContentRequest): Promise<ExitName> {
  const file = checkRequest(request)
  const spool = createSpool(file, context.removeOnSignal)
  try {
    return await build(context, request, { file, makeFolder: spool.makeFolder })
  } finally {
    await spool.remove()
  }
}

/** Folders beside the bundle, where the disk has to have room anyway, unlike the one for temporary files. */
function createSpool(file: string, removeOnSignal: CommandContext['removeOnSignal']) {
  const folders: string[] = []
  return {
    async makeFolder() {
      const folder = join(dirname(file), `.edgehost-${randomBytes(8).toString('hex')}.part`)
      removeOnSignal(folder)
      folders.push(folder)
      await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
        throw unwritable(file, error)
      })
      return folder
    },
    async remove() {
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    },
  }
}

async function build(
  context: CommandContext,
  request: ContentRequest,
  { file, makeFolder }: { readonly file: string; readonly makeFolder: () => Promise<string> },
): Promise<ExitName> {
  const { parts, converted } = await collectParts(context, request, makeFolder)
  const plan = planBundle(parts)
  const progress = createProgress('packing', context.errors)
  const sizeBytes = await writeBundle({
    ...{ plan, file, onBegin: context.removeOnSignal },
    onProgress: (done) => progress.report(done, plan.contentBytes),
  }).finally(progress.clear)
  const built = {
    file,
    indexDigest: identityOf(plan),
    entries: plan.entries.length,
    blobCount: plan.blobs.length,
    ...{ contentBytes: plan.contentBytes, sizeBytes },
    ...(converted.length === 0 ? {} : { withoutRegistryDigest: converted }),
  }
  await context.output.show(built, (paper) =>
    renderFacts(
      [
        { label: 'File', lines: [file] },
        { label: 'Identity', lines: [built.indexDigest] },
        {
          label: 'Holds',
          lines: [
            `${plural(built.entries, 'entry', 'entries')}, ${plural(built.blobCount, 'blob')} of ${megabytes(built.contentBytes)}`,
          ],
        },
        { label: 'Size', lines: [megabytes(sizeBytes)] },
      ],
      paper,
    ),
  )
  for (const name of converted)
    context.output.note(
      `${oneLine(name)} has no registry digest: docker save left its manifest out, so this one is new. Where the digest counts, save the image with skopeo copy or docker save of version 25 and later.`,
    )
  if (context.output.format === 'table')
    context.output.note(`Check its content: edgehostctl content inspect ${shellWord(file)}`)
  return 'ok'
}

const see = 'See: edgehostctl help content build'

/** @returns the file to write */
function checkRequest({ file, definitions, ...lists }: ContentRequest): string {
  if (file === undefined || !isBundleName(file))
    throw new Failure(
      'usage',
      `content build needs --output FILE, a name that ends in .tar, .tar.gz, .tgz or .tar.zst\n${see}`,
    )
  if (definitions.length > 1)
    throw new Failure('usage', `content build takes one --definition; a bundle has at most one\n${see}`)
  if ([definitions, ...Object.values(lists)].every((list) => list.length === 0))
    throw new Failure('usage', `content build needs something to pack, for example --oci-layout DIR\n${see}`)
  for (const { place, path } of inputFiles({ file, definitions, ...lists }))
    if (isSame(path, file))
      throw new Failure('usage', `--output ${file} is also the file of ${place}; name another file\n${see}`)
  const folders = lists.programs.map((value) => [`--programs ${value}`, splitPrograms(value).folder] as const)
  for (const [place, folder] of folders)
    if (isInside(file, folder))
      throw new Failure('usage', `--output ${file} is in the folder of ${place}; write it elsewhere\n${see}`)
  return file
}

/** Whether a file is, or would be, in a folder or below it. */
function isInside(file: string, folder: string): boolean {
  for (let parent = dirname(resolve(file)); ; parent = dirname(parent)) {
    if (isSame(parent, folder)) return true
    if (parent === dirname(parent)) return false
  }
}

/** Whether two paths are one file, also through links. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}
