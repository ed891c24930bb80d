import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { oneLine, renderFacts, plural } from '../ctl/layout.ts'
import { Failure, type ExitName } from '../ctl/exit-codes.ts'
import { shellWord } from '../base/printable.ts'
import { unsupportedIn } from '../cluster/desired/version.ts'
import { systemReason } from '../errors/system-reason.ts'
import { syncFolder, syncTree } from '../system/files.ts'
import { defaultKubernetes } from './commands/definition.ts'
import type { CommandContext } from './context.ts'
import { exampleFiles } from './example.ts'

/** The options of `edgehostctl definition init`. */
export interface InitRequest {
  readonly folder: string
  readonly name: string | undefined
  readonly kubernetes: string | undefined
}

// The cluster is named like the profile, where an operator does not think of another name.
const nameForm = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** `edgehostctl definition init`. The folder is made beside its place and renamed, so that it is there whole or not at all. */
export async function init(context: CommandContext, request: InitRequest): Promise<ExitName> {
  const { folder } = request
  const target = resolve(folder)
  const { name, kubernetes } = checkRequest(request, target)
  await refuseFull(folder, target)
  const files = exampleFiles({ name, kubernetes })
  const staging = join(dirname(target), `.edgehost-${randomBytes(8).toString('hex')}.part`)
  context.removeOnSignal(staging)
  try {
    await mkdir(staging)
    for (const [path, text] of files) {
      await mkdir(dirname(join(staging, path)), { recursive: true })
      await writeFile(join(staging, path), text)
    }
    await syncTree(staging)
    // In the place of an empty folder, rename(2); another program may have filled it meanwhile.
    await rename(staging, target)
    await syncFolder(dirname(target))
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    throw new Failure(
      'failed',
      `${folder} cannot be written: ${systemReason(error as NodeJS.ErrnoException)}`,
      {
        cause: error,
      },
    )
  }
  const [dir, archive] = [shellWord(folder), shellWord(`${name}.tgz`)]
  const build = `edgehostctl definition build --profile ${join(dir, 'profile.yaml')} --pack ${join(dir, 'packs')} --output ${archive}`
  const shown = { folder, name, kubernetes, files: files.map(([path]) => path) }
  await context.output.show(shown, (paper) =>
    renderFacts(
      [
        { label: 'Folder', lines: [`${oneLine(folder)}, ${plural(files.length, 'file')}`] },
        { label: 'Profile', lines: [`${name} 1.0.0, with Kubernetes ${kubernetes}`] },
        { label: 'Next', lines: [build, `edgehostctl definition needs ${archive}`] },
      ],
      paper,
    ),
  )
  return 'ok'
}

const see = 'See: edgehostctl help definition init'

function checkRequest({ folder, name: given, kubernetes = defaultKubernetes }: InitRequest, target: string) {
  if (target === process.cwd())
    throw new Failure(
      'usage',
      `${folder} is the working folder; name a folder that is to be made in it\n${see}`,
    )
  const name = given ?? basename(target)
  const what = given === undefined ? `the name of the folder, ${oneLine(name)},` : `--name ${oneLine(name)}`
  if (!nameForm.test(name))
    throw new Failure(
      'usage',
      `${what} cannot be the name of the profile: it must be 1 to 63 small letters, digits and hyphens${given === undefined ? '; give one with --name' : ''}\n${see}`,
    )
  if (!/^\d+\.\d+\.\d+$/.test(kubernetes))
    throw new Failure(
      'usage',
      `--kubernetes ${oneLine(kubernetes)} must be a version such as ${defaultKubernetes}\n${see}`,
    )
  const unsupported = unsupportedIn(kubernetes)
  if (unsupported !== undefined) throw new Failure('usage', `--kubernetes: ${unsupported}\n${see}`)
  return { name, kubernetes }
}

/** @throws Failure where something is there that is not an empty folder */
async function refuseFull(folder: string, target: string): Promise<void> {
  const present = await readdir(target).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    throw new Failure(
      'failed',
      code === 'ENOTDIR'
        ? `${folder} is not a folder; name another one`
        : `${folder} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`,
      { cause: error },
    )
  })
  if (present.length > 0)
    throw new Failure(
      'failed',
      `${folder} is not empty; name a folder that is not there yet, nothing was written`,
    )
}
