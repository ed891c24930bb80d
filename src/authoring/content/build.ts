import { statSync } from 'node:fs'
import { Failure, type ExitName } from '../../ctl/exit-codes.ts'
import { renderFacts } from '../../ctl/facts.ts'
import { plural } from '../../ctl/text.ts'
import { megabytes } from '../contents.ts'
import type { CommandContext } from '../command-context.ts'
import { createProgress } from '../progress.ts'
import { collectParts, inputFiles, type ContentRequest } from './collect-parts.ts'
import { planBundle } from './plan.ts'
import { identityOf, isBundleName, writeBundle } from './write.ts'

/** `edgehostctl content build`. */
export async function buildContent(context: CommandContext, request: ContentRequest): Promise<ExitName> {
  const file = checkRequest(request)
  const plan = planBundle(await collectParts(context, request))
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
  if (context.output.format === 'table')
    context.output.note(`Check its content: edgehostctl content inspect ${file}`)
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
  return file
}

/** Whether two paths are one file, also through links. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}
