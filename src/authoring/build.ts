import { buildArchive, isArchiveName } from '../definition/build/build.ts'
import { planBuild } from '../definition/build/build-plan.ts'
import { readPlanned } from '../definition/build/check-plan.ts'
import { defaultLimits } from '../archive/limits.ts'
import { Failure, type ExitName } from '../ctl/exit-codes.ts'
import { renderFacts, plural } from '../ctl/layout.ts'
import {
  describeContents,
  megabytes,
  type CommandContext,
  renderProblems,
  sortProblems,
  createProgress,
} from './context.ts'

/** The options of `edgehostctl definition build`. */
export interface BuildRequest {
  readonly profiles: readonly string[]
  readonly packs: readonly string[]
  /** `PACK:NAME` each. */
  readonly presets: readonly string[]
  readonly file: string | undefined
  readonly name: string | undefined
  readonly release: string | undefined
}

/** `edgehostctl definition build`. */
export async function build(
  context: CommandContext,
  { profiles, packs, presets, file, name, release }: BuildRequest,
): Promise<ExitName> {
  if (profiles.length === 0)
    throw new Failure(
      'usage',
      'definition build needs --profile FILE\nSee: edgehostctl help definition build',
    )
  if (file === undefined || !isArchiveName(file))
    throw new Failure(
      'usage',
      'definition build needs --file FILE, a name that ends in .tgz or .tar.zst\nSee: edgehostctl help definition build',
    )
  if (name === '' || release === '') throw new Failure('usage', '--name and --release may not be empty')
  const plan = planBuild({ profiles, packs, presets, limits: defaultLimits })
  const planned =
    plan.problems.length > 0
      ? { problems: plan.problems, contentProblems: () => [] }
      : await readPlanned({ plan, name, version: release, limits: defaultLimits })
  if (planned.problems.length > 0) {
    const problems = sortProblems(planned.problems)
    await context.output.show({ file, problems }, (paper) => renderProblems(problems, paper))
    throw new Failure('failed', `${plural(problems.length, 'problem')}; nothing was built`)
  }
  const progress = createProgress('packing', context.errors)
  const built = await buildArchive({
    plan,
    file,
    name,
    version: release,
    onBegin: context.removeOnSignal,
    onProgress: progress.report,
  }).finally(progress.clear)
  const contents = {
    profiles: plan.profiles.length,
    packs: plan.packs,
    members: built.memberCount,
    bytes: built.contentBytes,
  }
  // Problems of the content are shown at the files that the author can correct; the archive has other places.
  const problems = sortProblems(planned.contentProblems())
  const errors = problems.filter(({ severity }) => severity === 'error').length
  await context.output.show(
    { ...built, profiles: plan.profiles, isValid: errors === 0, problems },
    (paper) =>
      renderFacts(
        [
          { label: 'File', lines: [file] },
          { label: 'Definition', lines: [`${built.name} ${built.version}`] },
          { label: 'Holds', lines: [describeContents(contents)] },
          { label: 'Size', lines: [megabytes(built.sizeBytes)] },
        ],
        paper,
      ) + renderProblems(problems, paper),
  )
  if (errors === 0) return 'ok'
  throw new Failure('failed', `${file} is built and cannot be used: ${plural(errors, 'error')}`)
}
